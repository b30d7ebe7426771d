// The experts: their queries and their attention.

import type { DescribedExpert, DescribedTrait, EvaluatorBlock } from "../contract";
import { count, plural, share } from "../format";
import { GapBar } from "../parts/score_bar";
import { Section } from "../parts/words";
import { Attention } from "./evaluator_attention";

export function EvaluatorExperts({ block }: { block: EvaluatorBlock }) {
  const { experts } = block;
  if (!experts.length) return null;
  const texts = new Map(block.perspectives.map(({ id, text }) => [id, text]));
  const lead = experts.length > 1
    ? "Each case goes to the expert with the most similar queries. Each expert weights the answers differently."
    : "One expert judges all queries.";
  return (
    <Section title={experts.length > 1 ? "Experts" : "Expert"} lead={lead}>
      {experts.length > 1 && (
        <div class="verdicts">
          {experts.map((expert) => <Expert key={expert.index} block={block} expert={expert} texts={texts} />)}
        </div>
      )}
      <Attention block={block} />
    </Section>
  );
}

interface ExpertProps {
  block: EvaluatorBlock;
  expert: DescribedExpert;
  texts: Map<string, string>;
}

function Expert({ block: { run, decides }, expert, texts }: ExpertProps) {
  const here = run?.by_expert[expert.index] ?? null;
  const most = Math.max(...expert.traits.map(gap), 0.01);
  const [one, more] = decides === "pairs" ? ["pair", "pairs"] : ["response", "responses"];
  return (
    <div class="kind expert">
      <h3>Expert {expert.index + 1}</h3>
      {run !== null && here !== null && (
        <p><b class="amount">{count(here)}</b> <small>of {plural(run.cases, "case", "cases")} in this run
          {run.cases > 0 && <>, {share(here / run.cases)}</>}</small></p>
      )}
      {expert.size !== null && (
        <p class="hint">{plural(Math.round(expert.size), one!, more!)} in training</p>
      )}
      {expert.traits.length > 0
        ? <ul class="traits">{expert.traits.map((trait) => (
          <Trait key={trait.perspective} trait={trait} most={most} text={texts.get(trait.perspective)} />
        ))}</ul>
        : <p class="hint">Its queries have no distinctive traits.</p>}
    </div>
  );
}

const gap = ({ share, usual, apart }: DescribedTrait) =>
  Math.abs(share === null || usual === null ? apart : share - usual);

function Trait({ trait, most, text }: { trait: DescribedTrait; most: number; text?: string }) {
  const { share: own, usual, apart } = trait;
  return (
    <li>
      <span dir="auto">{text ?? trait.perspective}</span>
      <span class="trait-figures">
        <GapBar gap={Math.sign(apart) * gap(trait)} most={most} />
        <small>{own === null || usual === null
          ? (apart > 0 ? "more often than usual" : "less often than usual")
          : <>yes for <b>{share(own)}</b> of its queries, {share(usual)} of all</>}</small>
      </span>
    </li>
  );
}

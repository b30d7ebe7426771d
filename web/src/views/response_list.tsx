// All responses to one query; an expanded one shows its text and answers.

import { useMemo } from "preact/hooks";
import type { Head } from "../contract";
import { useReport } from "../context";
import { capital, two } from "../format";
import { FoldList } from "../parts/fold_list";
import { Strip } from "../parts/heat";
import { ScoreBar } from "../parts/score_bar";
import { Name, Scale, Section } from "../parts/words";
import { to } from "../routes";
import { AnswerList } from "./answer_list";
import { plainNumber } from "./gaps";
import { ordered } from "./heat_order";
import { ResponseText } from "./response_text";
import type { QueryResults } from "./sheet";

export function ResponseList({ results }: { results: QueryResults }) {
  const { head } = useReport();
  const items = results.block.items.length;
  const candidates = useMemo(() => ordered(results, { by: "score", down: true }), [results]);
  return (
    <Section title="Responses" lead={<>Best score on this query first. {squares(head, items)}</>}>
      <ResponseLineHead results={results} />
      <FoldList
        entries={candidates}
        keyOf={(candidate) => head.candidates[candidate]!.name}
        rowHeight={41}
        name="Responses"
        line={(candidate) => <ResponseLine results={results} candidate={candidate} />}
        inside={(candidate) => <ResponseInside results={results} candidate={candidate} />}
      />
    </Section>
  );
}

/** The legend of the colored squares. */
function squares(head: Head, items: number): string {
  if (!items) return "";
  const sides = head.yes_no ? "blue is yes, orange no" : "blue is high, orange low";
  return `Squares are the answers to ${itemNames(items)}: ${sides}, gray undecided.`;
}

const itemNames = (items: number) => (items === 1 ? "item 1" : `items 1\u2013${items}`);

const isLabeled = (results: QueryResults) => results.block.labels.length > 0;

/** Column headings; each line repeats them for screen readers. */
function ResponseLineHead({ results }: { results: QueryResults }) {
  const { head } = useReport();
  const items = results.block.items.length;
  const [low, high] = head.scale;
  const isOnScale = results.block.labels.every(([, label]) => low <= label && label <= high);
  return (
    <div class={`line response-line head ${isLabeled(results) ? "labeled" : ""}`} aria-hidden="true">
      <span>Score (<Scale head={head} />)</span>
      {isLabeled(results) && <span>Label{isOnScale && <> (<Scale head={head} />)</>}</span>}
      <span>Candidate</span>
      <span>{items > 0 && capital(itemNames(items))}</span>
    </div>
  );
}

interface OneProps {
  results: QueryResults;
  candidate: number;
}

function ResponseLine({ results, candidate }: OneProps) {
  const { head } = useReport();
  const score = results.scores[candidate] ?? null;
  const label = results.label(candidate);
  return (
    <span class={`line response-line ${isLabeled(results) ? "labeled" : ""}`}>
      <span class="measure">
        <span class="spoken">Score </span>
        <b>{score === null ? <span class="loud">none</span> : two(score)}</b>
        <ScoreBar score={score} scale={head.scale} />
      </span>
      {isLabeled(results) && (
        <span class="measure">
          {label === undefined
            ? "\u2013"
            : <><span class="phone-label">label</span> {plainNumber(label)}</>}
        </span>
      )}
      <span class="what"><Name>{head.candidates[candidate]!.name}</Name></span>
      <Strip answers={results.answers[candidate] ?? []} />
    </span>
  );
}

function ResponseInside({ results, candidate }: OneProps) {
  const { name } = useReport().head.candidates[candidate]!;
  return (
    <>
      <div class="halves">
        <ResponseText results={results} candidate={candidate} />
        <AnswerList results={results} candidate={candidate} />
      </div>
      <p class="hint">
        <a href={to.response(name, results.id)}>Open this response</a>{" \u00b7 "}
        <a href={to.candidate(name)}>All responses of <Name>{name}</Name></a>
      </p>
    </>
  );
}

// Heat map of the answers, candidates by items.

import { useMemo, useState } from "preact/hooks";
import { useReport } from "../context";
import { count, two } from "../format";
import { Choice, type Options } from "../parts/choice";
import { useKept } from "../parts/kept";
import { answerName, Section } from "../parts/words";
import { HeatHead, type HeatHeadProps } from "./heat_head";
import { ordered, type HeatOrder } from "./heat_order";
import { HeatRow, type Tint } from "./heat_row";
import type { QueryResults } from "./sheet";

const FIRST = 40;

export function HeatMap({ results }: { results: QueryResults }) {
  const { head } = useReport();
  const [order, setOrder] = useState<HeatOrder>({ by: "score", down: true });
  const [tint, setTint] = useKept<Tint>("tint", "answer", [["answer", ""], ["apart", ""]]);
  if (!results.block.items.length) return null;
  return (
    <Section title="All candidates" lead={<>{head.answers_are}, for every candidate and item of the checklist.</>}>
      <Disputed results={results} order={order} onOrder={setOrder} />
      <Tints tint={tint} onTint={setTint} />
      <HeatTable results={results} order={order} onOrder={setOrder} tint={tint} />
    </Section>
  );
}

function HeatTable(props: HeatHeadProps & { tint: Tint }) {
  const { results, order, tint } = props;
  const { head } = useReport();
  const [whole, setWhole] = useState(false);
  const candidates = useMemo(() => ordered(results, order), [results, order]);
  const shown = whole ? candidates : candidates.slice(0, FIRST);
  return (
    <div>
      <div class="scroll">
        <table class="heat-map">
          <caption class="spoken">{head.answers_are} by candidate and item</caption>
          <HeatHead {...props} />
          <tbody>
            {shown.map((candidate) => (
              <HeatRow key={candidate} {...{ results, candidate, tint }} sorted={order.by} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < candidates.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {count(candidates.length)} candidates
        </button>
      )}
    </div>
  );
}

function Tints({ tint, onTint }: { tint: Tint; onTint: (tint: Tint) => void }) {
  const { yes_no } = useReport().head;
  const tints: Options<Tint> = [
    ["answer", `answer (blue ${yes_no ? "yes, orange no" : "high, orange low"})`],
    ["apart", "above (blue) or below the mean"],
  ];
  return (
    <div class="tints">
      <Choice label="Colors show" value={tint} options={tints} onChoice={onTint} />
    </div>
  );
}

interface DisputedProps {
  results: QueryResults;
  order: HeatOrder;
  onOrder: (order: HeatOrder) => void;
}

/** Points to the item with the largest SD of its answers. */
function Disputed({ results, order, onOrder }: DisputedProps) {
  const { head } = useReport();
  const item = results.mostDisputed;
  if (item === null) return <p class="hint">All candidates have the same answers.</p>;
  const isSorted = order.by === item;
  return (
    <p class="disputed">
      Candidates differ most on <b>item {item + 1}</b> (SD of {answerName(head)}{" "}
      {two(results.block.figures[item]!.spread!)}).{" "}
      <button
        type="button"
        aria-pressed={isSorted}
        onClick={() => onOrder(isSorted ? { by: "score", down: true } : { by: item, down: true })}
      >
        {isSorted ? "Sorted by this item" : "Sort by this item"}
      </button>
    </p>
  );
}

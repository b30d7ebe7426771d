// One query in a list.

import { useReport } from "../context";
import { two } from "../format";
import { ScoreBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import { useDetailWords } from "./detail_note";

/** Column headings; each line repeats them for screen readers. */
export const QueryLineHead = () => (
  <div class="line query-line head" aria-hidden="true">
    <span>Mean score</span><span>Query</span><span>SD of scores</span><span>Missing</span>
  </div>
);

export function QueryLine(props: { queries: Queries; place: number; widest: number }) {
  const { head } = useReport();
  const { place, widest } = props;
  const { table } = props.queries;
  const leftOut = useDetailWords()(props.queries, place);
  const mean = table.mean[place] ?? null;
  const spread = table.spread[place] ?? null;
  const missing = table.missing[place]!;
  return (
    <a class="line query-line" href={to.query(table.id[place]!)}>
      <span class="measure">
        <span class="phone-label">Mean<span class="spoken"> score</span></span>{" "}
        <b>{mean === null ? "none" : two(mean)}</b>
        <ScoreBar score={mean} scale={head.scale} />
      </span>
      <span class="what">
        <b><Name>{table.id[place]!}</Name></b>
        {table.category[place] !== null && <Tag><Name>{table.category[place]!}</Name></Tag>}
        {leftOut && <Tag mood="fair">{leftOut}</Tag>}
        <span class="snippet" dir="auto">{table.snippet[place]}</span>
      </span>
      <span class="measure spread">
        <span class="spoken">, </span><span class="phone-label">SD<span class="spoken"> of scores</span></span>{" "}
        <b>{spread === null ? "unknown" : two(spread)}</b>
        <ScoreBar score={spread} scale={[0, widest]} />
      </span>
      <span class={missing ? "loud missing" : "missing"}>
        <span class="spoken">, </span><span class="phone-label">missing</span>{" "}
        {missing || "\u2013"}
      </span>
    </a>
  );
}

// One query in the comparison of two candidates.

import { useReport } from "../context";
import { two } from "../format";
import { GapBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import type { Queries } from "../report";
import { gapWords } from "./gaps";

export interface Difference {
  query: number;
  first: number;
  second: number;
  /** First minus second. */
  gap: number;
}

export function DecidingLine(props: { queries: Queries; difference: Difference; most: number }) {
  const { tie_margin } = useReport().head;
  const { query, first, second, gap } = props.difference;
  const { id, category, snippet } = props.queries.table;
  return (
    <span class="line compare-line">
      <b>{gapWords(gap)}</b>
      <GapBar gap={gap} most={props.most} />
      <span class="scores-pair">
        {two(first)} <span class="soft">vs.</span> {two(second)}
        {(gap === 0 || Math.abs(gap) < tie_margin) && <small> tie</small>}
      </span>
      <span class="what">
        <b><Name>{id[query]!}</Name></b>
        {category[query] !== null && <Tag><Name>{category[query]!}</Name></Tag>}
        <span class="snippet" dir="auto">{snippet[query]}</span>
      </span>
    </span>
  );
}

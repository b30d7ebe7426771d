// The order of candidates in a heat map.

import type { QueryResults } from "./sheet";

/** Sort key: rank in the run, score on this query, or the answers to one item. */
export interface HeatOrder {
  by: "rank" | "score" | number;
  /** Highest first; for ranks, best first. */
  down: boolean;
}

/** The order after a click on a column; a second click reverses it. */
export const clicked = (order: HeatOrder, by: HeatOrder["by"]): HeatOrder =>
  order.by === by ? { by, down: !order.down } : { by, down: true };

export function ariaSort(order: HeatOrder, by: HeatOrder["by"]) {
  if (order.by !== by) return undefined;
  // Ranks rise from best to worst.
  return (by === "rank") === order.down ? "ascending" : "descending";
}

/** Candidates in this order; candidates without a value come last. */
export function ordered(results: QueryResults, { by, down }: HeatOrder): number[] {
  const places = results.scores.map((_, candidate) => candidate);
  if (by === "rank") return down ? places : places.reverse();
  const valueOf = (candidate: number) =>
    (by === "score" ? results.scores[candidate] : results.answers[candidate]?.[by]) ?? null;
  const sign = down ? -1 : 1;
  const key = (candidate: number) => {
    const value = valueOf(candidate);
    return value === null ? Infinity : sign * value;
  };
  return places.sort((a, b) => Math.sign(key(a) - key(b)) || a - b);
}

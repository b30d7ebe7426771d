// The order of candidates in a heat map.

import type { Sheet } from "./sheet";

/** By rank in the run, by score on this query, or by the answers to one item. */
export interface HeatOrder {
  by: "rank" | "score" | number;
  /** Highest first; for ranks, best first. */
  down: boolean;
}

/** A click on a column: sorts by it, and turns the order round the second time. */
export const clicked = (order: HeatOrder, by: HeatOrder["by"]): HeatOrder =>
  order.by === by ? { by, down: !order.down } : { by, down: true };

export function ariaSort(order: HeatOrder, by: HeatOrder["by"]) {
  if (order.by !== by) return undefined;
  // Ranks rise from best to worst.
  return (by === "rank") === order.down ? "ascending" : "descending";
}

/** Candidates in the order; those without the value last. */
export function ordered(sheet: Sheet, { by, down }: HeatOrder): number[] {
  const places = sheet.scores.map((_, candidate) => candidate);
  if (by === "rank") return down ? places : places.reverse();
  const valueOf = (candidate: number) =>
    (by === "score" ? sheet.scores[candidate] : sheet.answers[candidate]?.[by]) ?? null;
  const sign = down ? -1 : 1;
  const key = (candidate: number) => {
    const value = valueOf(candidate);
    return value === null ? Infinity : sign * value;
  };
  return places.sort((a, b) => Math.sign(key(a) - key(b)) || a - b);
}

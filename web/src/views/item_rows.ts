// All items with figures, and their queries.

import type { ItemFigure, ItemsBlock } from "../contract";
import type { Options } from "../parts/choice";
import type { Queries } from "../report";
import { wordsIn } from "../parts/words_box";
import { sliceTest } from "../slices";

export interface ItemRow {
  query: number;
  item: number;
  text: string;
  /** null without groups. */
  group: string | null;
  figure: ItemFigure;
}

export function itemRows(queries: Queries, block: ItemsBlock): ItemRow[] {
  const rows: ItemRow[] = [];
  for (let query = 0; query < queries.count; query++) {
    const entry = block[queries.itemRow(query)];
    if (entry === undefined) continue;
    entry.texts.forEach((text, item) => {
      const group = entry.groups?.[item] ?? null;
      rows.push({ query, item, text, group, figure: entry.figures[item]! });
    });
  }
  return rows;
}

export type ItemSort =
  | "influence" | "spread" | "even" | "low" | "high" | "correlation" | "against" | "benchmark";

type Key = (row: ItemRow) => number | null;
const down = (value: number | null) => (value === null ? null : -value);

export const KEYS: Record<ItemSort, Key> = {
  influence: ({ figure }) => down(figure.influence),
  spread: ({ figure }) => down(figure.spread),
  even: ({ figure }) => figure.spread,
  low: ({ figure }) => figure.mean,
  high: ({ figure }) => down(figure.mean),
  correlation: ({ figure }) => down(figure.correlation),
  against: ({ figure }) => figure.correlation,
  benchmark: () => 0,
};

/** Sorted, unknown values last; ties in benchmark order. */
export function sortedRows(rows: ItemRow[], sort: ItemSort): ItemRow[] {
  const key = (row: ItemRow) => KEYS[sort](row) ?? Infinity;
  const apart = (a: ItemRow, b: ItemRow) => Math.sign(key(a) - key(b));
  return [...rows].sort((a, b) => apart(a, b) || a.query - b.query || a.item - b.item);
}

/** Options of the group select; "" means all. */
export function groupsOf(rows: ItemRow[]): Options<string> {
  const names = new Set(rows.map(({ group }) => group).filter((name) => name !== null));
  return [["", "All"], ...[...names].map((name) => [name, name] as const)];
}

/** Rows that match the verdict, slice, group ("" means any) and words. */
export function wantedRows(
  rows: ItemRow[],
  queries: Queries,
  by: { verdict: string; slice: string; group: string; words: string },
): ItemRow[] {
  const found = wordsIn(by.words);
  const inSlice = sliceTest(queries, by.slice);
  return rows.filter(({ query, text, group, figure }) =>
    (!by.verdict || figure.verdict === by.verdict)
    && inSlice(query)
    && (!by.group || group === by.group)
    && (!by.words || found(`${text} ${group ?? ""} ${figure.why} ${queries.table.id[query]}`.toLowerCase())));
}

// Items as CSV rows.

import type { Table } from "../parts/download";
import type { Queries } from "../report";
import type { ItemRow } from "./item_rows";

export const itemTable = (queries: Queries, rows: ItemRow[]): Table => ({
  columns: [
    "query", "category", "item", "group", "text", "weight", "mean", "spread", "correlation", "influence",
    "verdict", "why",
  ],
  rows: rows.map(({ query, item, group, text, figure }) => [
    queries.table.id[query]!, queries.category(query), item + 1, group, text, figure.weight, figure.mean,
    figure.spread, figure.correlation, figure.influence, figure.verdict, figure.why,
  ]),
});

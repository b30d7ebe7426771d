// Sorting and filtering of perspectives.

import type { DescribedPerspective, EvaluatorBlock } from "../contract";
import type { Options } from "../parts/choice";
import type { Table } from "../parts/download";
import { wordsIn } from "../parts/words_box";

/** Display names of the origins of perspectives. */
const ORIGINS: Record<string, string> = {
  rule: "guidelines",
  preset: "written for an instruction type",
  transfer: "from another evaluator's prompt",
  failures: "from failures",
  depth: "rephrased",
  breadth: "new question",
  mix: "explored again",
  routing: "for routing",
  person: "added by a person",
};

export const originWords = (origin: string) => ORIGINS[origin] ?? origin;

export const KINDS = { response: "on the response", query: "on the query" } as const;

export type PerspectiveSort = "importance" | "stability" | "least" | "new" | "old" | "pool";

export const SORTS: Options<PerspectiveSort> = [
  ["importance", "highest importance"],
  ["least", "lowest importance"],
  ["stability", "highest stability"],
  ["new", "latest round"],
  ["old", "earliest round"],
  ["pool", "pool order"],
];

const down = (value: number | null) => (value === null ? null : -value);

const KEYS: Record<PerspectiveSort, (row: DescribedPerspective) => number | null> = {
  importance: ({ importance }) => down(importance),
  least: ({ importance }) => importance,
  stability: ({ stability }) => down(stability),
  new: ({ round }) => -round,
  old: ({ round }) => round,
  pool: () => 0,
};

/** Importance is relative to the kind, so these orders list responses first, then queries. */
const BY_KIND: ReadonlySet<PerspectiveSort> = new Set(["importance", "least"]);

/** Sorted, unknown values last; ties in pool order. */
export function sortedPerspectives(rows: DescribedPerspective[], sort: PerspectiveSort) {
  const kind = (row: DescribedPerspective) => (BY_KIND.has(sort) && row.kind === "query" ? 1 : 0);
  const key = (row: DescribedPerspective) => KEYS[sort](row) ?? Infinity;
  // Unknown values are equal; Infinity - Infinity would be NaN.
  const apart = (a: DescribedPerspective, b: DescribedPerspective) =>
    key(a) === key(b) ? 0 : key(a) - key(b);
  return [...rows].sort((a, b) => kind(a) - kind(b) || apart(a, b));
}

export interface Wanted {
  kind: string;
  origin: string;
  words: string;
}

/** Perspectives that match the kind and origin ("" means any) and the words. */
export function wantedPerspectives(rows: DescribedPerspective[], by: Wanted) {
  const found = wordsIn(by.words);
  return rows.filter(({ kind, origin, text, types, id }) =>
    (!by.kind || kind === by.kind)
    && (!by.origin || origin === by.origin)
    && (!by.words || found(`${text} ${types.join(" ")} ${originWords(origin)} ${id}`.toLowerCase())));
}

/** Options of the origin select; "" means all. */
export function originsOf(rows: DescribedPerspective[]): Options<string> {
  const counts = new Map<string, number>();
  for (const { origin } of rows) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  return [["", "All"], ...[...counts].map(([name, n]) => [name, `${originWords(name)} (${n})`] as const)];
}

/** All known perspectives by id, including ancestors. */
export const familyOf = ({ perspectives, ancestors }: EvaluatorBlock) =>
  new Map([...ancestors, ...perspectives].map((each) => [each.id, each]));

export const perspectiveTable = (rows: DescribedPerspective[]): Table => ({
  columns: ["id", "text", "kind", "form", "origin", "round", "importance", "stability", "types", "parents"],
  rows: rows.map((row) => [
    row.id, row.text, row.kind, row.form, row.origin, row.round, row.importance, row.stability,
    row.types.join("; "), row.parents.join(" "),
  ]),
});

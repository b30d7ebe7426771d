// What a reader has chosen, as the address says it: the query, the responses, filters and order.

import type { LabelsBlock } from "../contract";
import { wordsIn } from "../parts/words_box";
import type { Queries, Report, Scores } from "../report";
import { addressOf } from "../routes";
import type { Look } from "../text/rendered";
import { byNumber } from "./orders";
import { searchedText, sliceTest } from "../slices";
import { nullIfMissing } from "../source";

export type Sort = "spread" | "gap" | "low" | "label" | "mean" | "missing" | "benchmark";
export type Only = "" | "first" | "second" | "labeled" | "missing";

export interface Reading {
  /** "" for the first query of the list. */
  query: string;
  /** Indices of the candidates whose responses are shown. */
  candidates: number[];
  words: string;
  /** A slice of the queries, as "field:value"; "" for all. */
  slice: string;
  sort: Sort;
  only: Only;
  look: Look;
}

const SORTS: readonly Sort[] = ["spread", "gap", "low", "label", "mean", "missing", "benchmark"];
const LOOKS: readonly Look[] = ["rendered", "raw", "diff"];
const ONLY: readonly Only[] = ["", "first", "second", "labeled", "missing"];

const among = <T extends string>(values: readonly T[], found: string | null): T =>
  values.find((value) => value === found) ?? values[0]!;

/** Reads the address; unknown values and candidates are left out. */
export function readingOf(hash: string, places: ReadonlyMap<string, number>): Reading {
  const { fields } = addressOf(hash);
  const named = fields.getAll("c").flatMap((name) => places.get(name) ?? []);
  const first = [...places.values()].slice(0, 2);
  return {
    query: fields.get("q") ?? "",
    candidates: named.length ? [...new Set(named)] : first,
    words: fields.get("words") ?? "",
    slice: fields.get("in") ?? "",
    sort: among(SORTS, fields.get("sort")),
    only: among(ONLY, fields.get("only")),
    look: among(LOOKS, fields.get("look")),
  };
}

/** Tables that the list is filtered and sorted by. */
export interface Tables {
  queries: Queries;
  /** null if the page has no scores. */
  scores: Scores | null;
  /** null if no response is labeled. */
  labels: LabelsBlock | null;
}

export async function openTables(report: Report): Promise<Tables> {
  const [queries, scores, labels] = await Promise.all([
    report.queries(),
    report.scores().catch(nullIfMissing),
    report.labels().catch(nullIfMissing),
  ]);
  return { queries, scores, labels };
}

/** The first candidate's score minus the second's; null if one is missing. */
export function gapOn({ scores }: Tables, place: number, [first, second]: number[]): number | null {
  const a = first === undefined ? null : scores?.at(place, first);
  const b = second === undefined ? null : scores?.at(place, second);
  return typeof a === "number" && typeof b === "number" ? a - b : null;
}

/** The largest distance of a score from its label on each query, among the shown candidates. */
function fromLabels({ labels }: Tables, candidates: number[]): Map<number, number> {
  const found = new Map<number, number>();
  labels?.query.forEach((query, row) => {
    if (!candidates.includes(labels.candidate[row]!)) return;
    const distance = Math.abs(labels.score[row]! - labels.label[row]!);
    found.set(query, Math.max(distance, found.get(query) ?? 0));
  });
  return found;
}

const minus = (value: number | null | undefined) => (value == null ? null : -value);

function keyOf(reading: Reading, tables: Tables): (place: number) => number | null {
  const { table } = tables.queries;
  const { candidates } = reading;
  switch (reading.sort) {
    case "gap": return (place) => {
      const gap = gapOn(tables, place, candidates);
      return gap === null ? null : -Math.abs(gap);
    };
    case "low": return (place) => tables.scores?.at(place, candidates[0] ?? 0) ?? null;
    case "label": {
      const distances = fromLabels(tables, candidates);
      return (place) => minus(distances.get(place));
    }
    case "mean": return (place) => table.mean[place] ?? null;
    case "missing": return (place) => minus(table.missing[place]);
    case "benchmark": return (place) => place;
    case "spread": return (place) => minus(table.spread[place]);
  }
}

/** The queries that match, in order. */
export function listed(reading: Reading, tables: Tables): number[] {
  const { queries } = tables;
  const matches = wordsIn(reading.words);
  const inSlice = sliceTest(queries, reading.slice);
  const labeled = new Set(tables.labels?.query);
  const isKept = (place: number) => {
    const gap = gapOn(tables, place, reading.candidates);
    if (reading.only === "first" && !(gap !== null && gap > 0)) return false;
    if (reading.only === "second" && !(gap !== null && gap < 0)) return false;
    if (reading.only === "labeled" && !labeled.has(place)) return false;
    if (reading.only === "missing" && !queries.table.missing[place]) return false;
    return inSlice(place) && (!reading.words || matches(searchedText(queries, place)));
  };
  const places = Array.from({ length: queries.count }, (_, place) => place).filter(isKept);
  return byNumber(places, keyOf(reading, tables));
}

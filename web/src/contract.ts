// What Python hands to the page. `src/rocketeval/report/data.py` holds the same names.
//
// A report is a head (small, always there) and blocks (gzip, opened when they are needed). In
// report.html blocks are embedded; `rocketeval view` serves the same blocks by the same names.

/** A figure with its interval; an end is null where it is unknown or has no limit. */
export interface Interval {
  value: number;
  low: number | null;
  high: number | null;
}

export type Unit = "number" | "share" | "rating" | "score";

export interface Candidate {
  name: string;
  /** null: not ranked, because it has no score at all. */
  rank: number | null;
  rank_low: number | null;
  rank_high: number | null;
  /** Neighbours with the same group cannot be told apart. */
  group: number | null;
  /** Clearly better than the next row; null for the last and the unranked. */
  beats_next: boolean | null;
  rating: Interval | null;
  score: Interval | null;
  /** Queries it has a score for, and those it should have one for and has not. */
  queries: number;
  missing: number;
  /** Mean human or labeler's label, and a reference rating such as Elo, where the run has them. */
  label: number | null;
  reference: number | null;
  /** 5, 25, 50, 75 and 95 % of its scores, over all queries of the run. */
  quantiles: [number, number, number, number, number] | null;
}

/** Mean scores on the queries of one category, over all queries of the run. */
export interface CategoryMeans {
  name: string;
  queries: number;
  /** One a candidate, in the head's order. */
  means: (number | null)[];
}

/** Mean answers to the items of one group, such as a sub-dimension. */
export interface GroupMeans {
  name: string;
  /** What stands before the colon in its name; null without one. */
  dimension: string | null;
  /** Whether it is a dimension with all its groups. */
  whole: boolean;
  queries: number;
  /** One a candidate, of the first in the head's order. */
  means: (Interval | null)[];
  /** Answers that are missing, as many. */
  missing: number[];
}

/** One of the three numbers on the first screen that say how far to trust the judge. */
export interface TrustNumber {
  title: string;
  value: Interval | null;
  unit: Unit;
  /** "good" | "fair" | "poor" | "unknown": never by colour alone, `verdict` says it in words. */
  mood: "good" | "fair" | "poor" | "unknown";
  verdict: string;
  /** What it must be seen beside: trivial rules (floor) and people among themselves (ceiling). */
  beside: { name: string; value: number; kind: "floor" | "ceiling" }[];
  /** The range of the scale it is drawn on. */
  range: [number, number];
  how: string;
}

export interface ReportFigure {
  name: string;
  value: Interval | null;
  note: string;
  unit: Unit;
  baseline: boolean;
}

export interface FigureTable {
  title: string;
  columns: string[];
  rows: { name: string; cells: (Interval | null)[]; note: string }[];
  unit: Unit;
  note: string;
}

export interface ReportCurve {
  title: string;
  x_label: string;
  y_label: string;
  /** Where a perfectly calibrated judge would lie: y = x. */
  diagonal: boolean;
  bins: { x: number; y: Interval; n: number }[];
  how: string;
}

export interface StageCost {
  stage: string;
  seconds: number | null;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost: number | null;
  currency: string;
}

export interface MissingNote {
  what: string;
  count: number;
  /** Out of how many; null where that says nothing. */
  of: number | null;
  /** False for what is unusual but was still used. */
  lost: boolean;
}

export interface LostItem {
  query: number;
  /** Its number in the checklist, from 1. */
  item: number;
  text: string;
  p_yes: number;
  neighbours_p_yes: number;
  points: number;
}

export interface Explained {
  candidate: number;
  /** Points lost a query against its neighbours in the ranking; negative if it gains. */
  points: Interval | null;
  losses: LostItem[];
}

/** Only in pages that `rocketeval view` serves. */
export interface LiveProgress {
  /** "finished" | "going" (being written now) | "paused" (unfinished, nobody writes). */
  state: "finished" | "going" | "paused";
  stage: string;
  done: number;
  total: number;
  /** Responses judged a second; null before it is known. */
  rate: number | null;
  seconds_left: number | null;
  /** Changes whenever the page should be loaded again. */
  version: string;
}

export interface Head {
  run: string;
  benchmark: string;
  created: string;
  finished: string;
  made_with: string;
  /** Why these figures are not final; "" when they are. */
  provisional: string;
  /** Who is ahead, and how surely, in a sentence or two. */
  conclusion: string;
  /** More than 1: that many sets of candidates share no query and must not be compared. */
  islands: number;
  /** How the scorer weighs the items of a checklist; "none" where it has no weight per item. */
  weights: "equal" | "learned" | "none";
  /** What the scorer learned from: "labels", "votes" or "". */
  learned_from: string;
  judge: string;
  judge_details: [string, string][];
  author: string;
  method: string;
  scorer: string;
  scale: [number, number];
  /** What an answer is, as a heading: "Probability of yes" or "Grade, from worst (0) to best (1)". */
  answers_are: string;
  yes_no: boolean;
  level: number;
  tie_margin: number;
  sizes: [string, number][];
  losses: MissingNote[];
  /** What was looked for and not found missing. */
  nothing_lost: string[];
  /** Ranked ones first, best first; then those without any score. */
  candidates: Candidate[];
  separation: string[];
  trust: TrustNumber[];
  advice: string[];
  figures: ReportFigure[];
  tables: FigureTable[];
  calibration: ReportCurve[];
  costs: StageCost[];
  cost_notes: [string, string][];
  /** Share of shared queries the row wins; candidates are the first `wins.length`. */
  wins: (number | null)[][];
  explained: Explained[];
  /** How the figures were made, as footnotes. */
  notes: string[];
  /** Files of the run's folder that hold the rows behind the figures. */
  files: { name: string; what: string }[];
  /** The largest ones. */
  categories: CategoryMeans[];
  /** A dimension as a whole before its parts; empty where checklists have no groups. */
  groups: GroupMeans[];
  /** Groups that are too many for the page. */
  groups_left_out: number;
  /** The evolved evaluator that judged, in a sentence or two; "" without one. */
  evaluator: string;
  /** Where these files lie, seen from the page: "" from disk, "files/" when served. */
  files_at: string;
  live: LiveProgress | null;
  /** How to leave for the list of runs; null in report.html. */
  index_at: string | null;
  blocks: "embedded" | "served";
}

// ---- Blocks ----

/** Block "queries": every query of the run, in the benchmark's order, as columns. */
export interface QueriesBlock {
  id: string[];
  category: (string | null)[];
  /** The start of the query's text. */
  snippet: string[];
  mean: (number | null)[];
  /** Standard deviation of the candidates' scores: where candidates disagree most. */
  spread: (number | null)[];
  missing: number[];
  items: number[];
  /**
   * How much of a query is here: 0 only this line, 1 its row in "scores", 2 also its answers in
   * "answers", its items in "items" and its block "query-<place>", 3 also the responses' texts.
   */
  detail: (0 | 1 | 2 | 3)[];
}

/**
 * Block "scores": Float32, little-endian, one row a query with detail >= 1 (in order), one column a
 * candidate (in the head's order); NaN where there is no score.
 *
 * Block "answers": Uint16, little-endian, for every query with detail >= 2 (in order) a table of
 * candidates by items; p = value / ANSWER_STEPS, NO_ANSWER where it is missing.
 */
export const ANSWER_STEPS = 60000;
export const NO_ANSWER = 65535;

/** What one item adds to its query's scores, over all responses. */
export interface ItemFigure {
  weight: number;
  learned: boolean;
  mean: number | null;
  spread: number | null;
  /** With the response's score. */
  correlation: number | null;
  /** Share of the differences in the query's scores that this item makes. */
  influence: number | null;
  /** "dead" | "redundant" | "decisive" | "". */
  verdict: string;
  /** The verdict's reason in words, such as "yes to all" or "says the same as item 3 (0.97)". */
  why: string;
}

/** Block "items": for every query with detail >= 2, in order. */
export type ItemsBlock = {
  texts: string[];
  /** What each item belongs to; null without groups. */
  groups: string[] | null;
  figures: ItemFigure[];
}[];

/** Block "query-<place>", place from 0 in the queries block. */
export interface QueryBlock {
  text: string;
  history: [role: string, content: string][];
  reference: string | null;
  items: string[];
  /** What each item belongs to; null without groups. */
  groups: string[] | null;
  figures: ItemFigure[];
  /** One a candidate: its response, or null where it has none. Absent at detail 2. */
  texts: (string | null)[] | null;
  /** The conversation a candidate really had, where it differs from `history`. */
  histories: [candidate: number, turns: [role: string, content: string][]][];
  /** Answers with more to tell than a number: missing ones, and those with visible bounds. */
  odd: [candidate: number, item: number, low: number | null, high: number | null, why: string][];
  /** Forged delimiters or tokens disarmed before the judge saw a response. */
  disarmed: [candidate: number, count: number][];
  labels: [candidate: number, label: number][];
  /** Only where "scores" and "answers" do not hold this query. */
  cells: { scores: (number | null)[]; answers: (number | null)[][] } | null;
}

/** Block "labels": labelled responses as columns, for the scatter; at most some thousands. */
export interface LabelsBlock {
  query: number[];
  candidate: number[];
  score: number[];
  label: number[];
  /** Labelled responses that were left out of this block. */
  left_out: number;
}

/**
 * Block "pairs": comparisons of two candidates, exactly as `rocketeval compare` makes them.
 * Candidates a < b < first; pairs lie at a * first - a * (a + 1) / 2 + (b - a - 1).
 */
export interface PairsBlock {
  first: number;
  /** null where the two share no query. */
  effect: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  p_value: (number | null)[];
  wins: number[];
  ties: number[];
  losses: number[];
  /** Of a against b: "better" | "worse" | "equal enough" | "can't tell" | "share no query". */
  verdict: string[];
  how: string;
}

// ---- Block "evaluator": the evolved evaluator that judged; `src/rocketeval/evolve/result.py` has
// the same names. Absent where head.evaluator is "". ----

/** A question that the judge answered. */
export interface DescribedPerspective {
  id: string;
  text: string;
  /** What it is about. */
  kind: "response" | "query";
  /** How it came into the pool: "rule", "preset", "failures" and so on. */
  origin: string;
  /** Ids of those it was made from; the evaluator need not use them itself. */
  parents: string[];
  /** The round that brought it; 0 for what was there at the beginning. */
  round: number;
  /** Types of instruction it was written for; empty for any. */
  types: string[];
  form: "choice" | "graded";
  /** Its share in the surrogate's decisions, among those of its kind. */
  importance: number | null;
  /** Share of the folds in which it was worth keeping. */
  stability: number | null;
}

/** What tells an expert's queries from others. */
export interface DescribedTrait {
  /** Id of a perspective about queries. */
  perspective: string;
  /** From the mean of all to the expert's centroid, in the router's weighted space. */
  apart: number;
  /** Share of the expert's queries that have the trait, and of all; null where it weighs nothing. */
  share: number | null;
  usual: number | null;
}

export interface DescribedExpert {
  index: number;
  /** Cases in training that it is the nearest expert of; null when that is not kept. */
  size: number | null;
  /** One a perspective about responses, in order; they sum to one. */
  attention: number[];
  /** Those that lie farthest from the mean, farthest first. */
  traits: DescribedTrait[];
}

export interface DescribedWeight {
  perspective: string;
  weight: number;
}

/** What one arm reached in validation. */
export interface DescribedFigure {
  name: string;
  value: Interval | null;
  note: string;
  /** Whether it is the evaluator itself; the others are what it must be seen beside. */
  own: boolean;
}

/** What is right among the cases that it is so sure of. */
export interface DescribedConfidence {
  threshold: number;
  /** Share of the cases with at least this confidence. */
  coverage: number;
  accuracy: Interval | null;
  cases: number;
}

export interface DescribedProvenance {
  created: string;
  benchmark: string;
  /** Cases with gold that it learned from. */
  cases: number | null;
  rounds: number | null;
  judge: string;
}

/** What it did in this run. */
export interface DescribedRun {
  cases: number;
  by_expert: number[];
  /** How sure it was: counts between edges, of which there is one more. */
  confidence: { edges: number[]; counts: number[] };
  /** Cases below it should go to a person; null when none is recommended. */
  threshold: number | null;
  to_person: number;
}

export interface EvaluatorBlock {
  /** What it decides: who wins between two responses, or the score of one. */
  decides: "pairs" | "responses";
  /** Whether the judge saw two responses at once, or one at a time. */
  asking: "pairs" | "each";
  perspectives: DescribedPerspective[];
  /** Those that perspectives above were made from and that it does not use. */
  ancestors: DescribedPerspective[];
  experts: DescribedExpert[];
  router: DescribedWeight[];
  /** What the figures measure, such as "accuracy". */
  measure: string;
  unit: Unit;
  figures: DescribedFigure[];
  confidence: DescribedConfidence[];
  cost: [name: string, value: string][];
  provenance: DescribedProvenance;
  run: DescribedRun | null;
}

// ---- The list of runs, in pages that `rocketeval view` serves ----

export interface RunLine {
  name: string;
  /** Where its page lies, seen from the list. */
  at: string;
  /** Runs with the same benchmark (same queries) are shown together. */
  benchmark: string;
  created: string;
  state: "finished" | "going" | "paused" | "damaged";
  /** Words for a run that cannot be shown. */
  why: string;
  judge: string;
  method: string;
  scorer: string;
  queries: number;
  candidates: number;
  done: number;
  total: number;
  seconds: number | null;
  prompt_tokens: number;
  cost: number | null;
  currency: string;
  trust: TrustNumber | null;
  /** Best first. */
  ranking: { name: string; rating: Interval | null; score: Interval | null }[];
}

export interface RunsHead {
  folder: string;
  made_with: string;
  version: string;
  runs: RunLine[];
}

// The data contract between Python and the page, mirrored in `src/rocketeval/report/model.py`.
//
// A report consists of a head (small, always present) and blocks (gzip, loaded on demand). In
// report.html blocks are embedded; `rocketeval view` serves the same blocks under the same names.

/** A figure with its interval; a bound is null if it is unknown or infinite. */
export interface Interval {
  value: number;
  low: number | null;
  high: number | null;
}

export type Unit = "number" | "share" | "rating" | "score";

export interface Candidate {
  name: string;
  /** null if the candidate has no score. */
  rank: number | null;
  rank_low: number | null;
  rank_high: number | null;
  /** Candidates of one group are tied with the first one in it. */
  group: number | null;
  /** Significantly better than the next row; null for the last and for unranked rows. */
  beats_next: boolean | null;
  rating: Interval | null;
  score: Interval | null;
  /** Number of queries with a score, and without one. */
  queries: number;
  missing: number;
  /** Mean label, and reference rating such as Elo; null if the run has none. */
  label: number | null;
  reference: number | null;
  /** 5%, 25%, 50%, 75% and 95% quantiles of its scores over all queries. */
  quantiles: [number, number, number, number, number] | null;
}

/** Mean scores on the queries of one slice: those with the same value of a field. */
export interface SliceMeans {
  /** Such as "category", "tag", "length" or "turns". */
  field: string;
  /** The value. */
  name: string;
  queries: number;
  /** One per candidate, for the first candidates of the head. */
  means: (Interval | null)[];
}

/** Mean answers to the items of one group, such as a sub-dimension. */
export interface GroupMeans {
  name: string;
  /** The part of its name before the colon; null without a colon. */
  dimension: string | null;
  /** Whether it is a whole dimension, with all its groups. */
  whole: boolean;
  queries: number;
  /** One per candidate, for the first candidates of the head. */
  means: (Interval | null)[];
  /** Number of unanswered items, one per candidate. */
  missing: number[];
}

/** One of the three trust figures on the first screen. */
export interface TrustNumber {
  title: string;
  value: Interval | null;
  unit: Unit;
  /** Shown as color; `verdict` says the same in words. */
  mood: "good" | "fair" | "poor" | "unknown";
  verdict: string;
  /** Values to compare with: a floor is a baseline, the other kind is human-human agreement. */
  beside: { name: string; value: number; kind: "floor" | "people" | "bound" }[];
  /** Ends of the scale it is drawn on. */
  range: [number, number];
  how: string;
  /** What it answers: is the judge right, is the order certain, is anything missing. */
  question: "judge" | "order" | "missing";
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
  /** Whether perfect calibration means y = x. */
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
  /** The total that `count` is part of; null if not meaningful. */
  of: number | null;
  /** False for unusual data that was still used. */
  lost: boolean;
}

export interface LostItem {
  query: number;
  /** Number in the checklist, from 1. */
  item: number;
  text: string;
  p_yes: number;
  neighbours_p_yes: number;
  points: number;
}

export interface Explained {
  candidate: number;
  /** Points lost per query to the neighbors in the ranking; negative for a gain. */
  points: Interval | null;
  losses: LostItem[];
}

/** Only in pages that `rocketeval view` serves. */
export interface LiveProgress {
  /** "going": a process is writing the run; "paused": unfinished, and no process is writing. */
  state: "finished" | "going" | "paused";
  stage: string;
  done: number;
  total: number;
  /** Responses judged per second; null if not yet known. */
  rate: number | null;
  seconds_left: number | null;
  /** Changes whenever the page should reload. */
  version: string;
  /** Whether the page's server may ask the judge again; only in heads. */
  asks_judge: boolean;
}

export interface Head {
  run: string;
  benchmark: string;
  created: string;
  finished: string;
  made_with: string;
  /** Reason why the figures are not final; "" if they are final. */
  provisional: string;
  /** The result of the ranking in one or two sentences. */
  conclusion: string;
  /** Number of candidate sets that share no query; sets must not be compared. */
  islands: number;
  /** How the scorer weights items; "none" if it has no weights per item. */
  weights: "equal" | "learned" | "none";
  /** Reference data the scorer learned from: "labels", "votes" or "". */
  learned_from: string;
  judge: string;
  judge_details: [string, string][];
  author: string;
  method: string;
  scorer: string;
  /** A score in a few words. */
  score_is: string;
  scale: [number, number];
  /** Heading for answers, such as "Probability of yes". */
  answers_are: string;
  yes_no: boolean;
  level: number;
  /** What the rank intervals promise, in one sentence. */
  rank_intervals: string;
  tie_margin: number;
  sizes: [string, number][];
  losses: MissingNote[];
  /** Checks that found nothing missing. */
  nothing_lost: string[];
  /** Ranked candidates, best first; then candidates without a score. */
  candidates: Candidate[];
  /** Answers per kind of item ("yes_no", "scale", "check"); empty if all are yes/no questions. */
  answer_kinds: [kind: string, answers: number][];
  /** What the mean of an item group is. */
  groups_are: string;
  separation: string[];
  trust: TrustNumber[];
  advice: string[];
  figures: ReportFigure[];
  tables: FigureTable[];
  calibration: ReportCurve[];
  costs: StageCost[];
  cost_notes: [string, string][];
  /** Share of common queries that the row wins, for the first `wins.length` candidates. */
  wins: (number | null)[][];
  explained: Explained[];
  /** Sentences on how the figures were computed. */
  notes: string[];
  /** Files of the run directory with the data behind the figures. */
  files: { name: string; what: string }[];
  /** The largest slices of each field of the queries. */
  slices: SliceMeans[];
  /** How many slices each field has, and what the intervals promise; one sentence per field. */
  slice_notes: string[];
  /** Each whole dimension precedes its groups; empty if checklists have no groups. */
  groups: GroupMeans[];
  /** Number of groups left out of the page. */
  groups_left_out: number;
  /** Description of the evolved evaluator that judged; "" without one. */
  evaluator: string;
  /** Path prefix of the files, relative to the page: "" on disk, "files/" when served. */
  files_at: string;
  live: LiveProgress | null;
  /** Link to the list of runs; null in report.html. */
  index_at: string | null;
  /** Where blocks are: in the page, at its server, or in files next to it. */
  blocks: "embedded" | "served" | "folder";
  /** Name of the person whose labels the server collects; "" if it collects none. */
  labeler: string;
}

// ---- Blocks ----

/** One field of the queries: its values, and those of each query. */
export interface SliceField {
  name: string;
  values: string[];
  /** Indices into `values`, one list per query. */
  of: number[][];
}

/** Block "queries": all queries in benchmark order, as columns. */
export interface QueriesBlock {
  id: string[];
  /** Fields by which the queries can be divided. */
  slices: SliceField[];
  /** First characters of the query. */
  snippet: string[];
  mean: (number | null)[];
  /** Standard deviation of the candidates' scores. */
  spread: (number | null)[];
  missing: number[];
  items: number[];
  /**
   * Detail level: 0 only this line; 1 also a row in "scores"; 2 also answers in "answers", items in
   * "items" and the block "query-<place>"; 3 also response texts.
   */
  detail: (0 | 1 | 2 | 3)[];
}

/**
 * Block "scores": Float32, little-endian; one row per query with detail >= 1, in order, and one
 * column per candidate, in the order of the head; NaN without a score.
 *
 * Block "answers": Uint16, little-endian; for every query with detail >= 2, in order, a table of
 * candidates by items; p = value / ANSWER_STEPS, or NO_ANSWER for an unanswered item.
 */
export const ANSWER_STEPS = 60000;
export const NO_ANSWER = 65535;

/** Figures of one item over all responses to its query. */
export interface ItemFigure {
  weight: number;
  learned: boolean;
  mean: number | null;
  spread: number | null;
  /** Correlation of its answers with the scores. */
  correlation: number | null;
  /** Share of the score differences on the query that this item causes. */
  influence: number | null;
  /** "dead" | "redundant" | "decisive" | "". */
  verdict: string;
  /** The reason for the verdict, such as "yes to all", or for the lack of one. */
  why: string;
  /** Whether code checks it instead of the judge. */
  check?: boolean;
}

/** Fewest responses to a query for these verdicts. */
export const FEWEST_FOR_DECISIVE = 3;
export const FEWEST_FOR_REDUNDANT = 10;

/** Block "items": for every query with detail >= 2, in order. */
export type ItemsBlock = {
  texts: string[];
  /** The group of each item; null without groups. */
  groups: string[] | null;
  figures: ItemFigure[];
}[];

/** Block "query-<place>"; place is an index into the queries block. */
export interface QueryBlock {
  text: string;
  history: [role: string, content: string][];
  reference: string | null;
  items: string[];
  /** The group of each item; null without groups. */
  groups: string[] | null;
  figures: ItemFigure[];
  /** One response per candidate, null without a response. Null as a whole at detail 2. */
  texts: (string | null)[] | null;
  /** The actual conversation of a candidate, if it differs from `history`. */
  histories: [candidate: number, turns: [role: string, content: string][]][];
  /** Answers that need an explanation: unanswered items and wide bounds. */
  odd: [candidate: number, item: number, low: number | null, high: number | null, why: string][];
  /** Number of forged delimiters or tokens that were neutralized in a response. */
  disarmed: [candidate: number, count: number][];
  labels: [candidate: number, label: number][];
  /** Set only if "scores" and "answers" do not have this query. */
  cells: { scores: (number | null)[]; answers: (number | null)[][] } | null;
  /** Set only if not all items are plain yes/no questions. */
  rubric?: RubricBlock;
  /** Passages that all candidates were given; set only with response texts, and if there are any. */
  context?: string[];
  /** Passages of candidates with their own. */
  contexts?: [candidate: number, passages: string[]][];
}

/** What a query's answers mean if not all items are plain yes/no questions. */
export interface RubricBlock {
  /** Descriptions of an item's levels, worst first; empty for other items. */
  levels: string[][];
  /** The answer in words, empty for yes/no; and the probability of "not applicable". */
  answers: [candidate: number, item: number, words: string, na: number | null][];
}

/** Block "labels": labeled responses as columns, for the scatter plot; at most some thousands. */
export interface LabelsBlock {
  query: number[];
  candidate: number[];
  score: number[];
  label: number[];
  /** Number of labeled responses left out of this block. */
  left_out: number;
}

/**
 * Block "pairs": pairwise comparisons, identical to `rocketeval compare`.
 * Candidates a < b < first; the pair (a, b) is at a * first - a * (a + 1) / 2 + (b - a - 1).
 */
export interface PairsBlock {
  first: number;
  /** null if the two share no query. */
  effect: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  p_value: (number | null)[];
  wins: number[];
  ties: number[];
  losses: number[];
  /** For a against b: "better" | "worse" | "equal enough" | "can't tell" | "share no query". */
  verdict: string[];
  how: string;
}

// ---- Labels, in pages that `rocketeval view --label` serves ----

/** A pair of responses to vote on, in the order to show. */
export interface QueuedPair {
  query: string;
  a: string;
  b: string;
}

/** The estimated mean label of a candidate. */
export interface LabelEstimate {
  candidate: string;
  value: Interval;
  labels: number;
}

/** What the labels show so far. */
export interface LabelProgress {
  labeler: string;
  votes: number;
  labels: number;
  /** Answers of the judge that this labeler marked as wrong. */
  wrong: number;
  /** Share of decided votes that the judge's scores predict; null with too few votes. */
  agreement: Interval | null;
  decided: number;
  /** More votes until the interval is about 10 points on each side. */
  needed: number | null;
  estimates: LabelEstimate[];
  /** Id of the record that this answers. */
  saved: string;
}

export interface LabelQueue {
  pairs: QueuedPair[];
  progress: LabelProgress;
}

// ---- Which sentences move an answer, in pages that `rocketeval view --ask-judge` serves ----

/** The estimated cost, before anything is asked. */
export interface InfluenceCost {
  requests: number;
  /** At most this many short requests more, which identify the judge. */
  contact: number;
  /** Sentences, list items, code blocks and tables of the response. */
  units: number;
  /** Parts that are left out: the units, or fewer blocks of neighboring ones. */
  asked: number;
  tokens: number;
  /** null without a price. */
  cost: number | null;
  currency: string;
}

/** A part of the response, and the answer without it. */
export interface PieceInfluence {
  text: string;
  /** False for what is never left out: blank lines and fences. */
  unit: boolean;
  /** null if the judge gave no answer. */
  p_yes: number | null;
  /** How much the part raises the answer. */
  change: number | null;
  /** Whether the change is larger than the judge's repeatability allows. */
  clear: boolean;
  /** Whether the item more likely does not apply without it; then it has no answer. */
  inapplicable: boolean;
}

export interface AnswerInfluence {
  /** Together they are the response. */
  pieces: PieceInfluence[];
  units: number;
  asked: number;
  /** The answer in the run. */
  stored: number | null;
  /** The answer about the whole response, asked now. */
  whole: number;
  /** Whether the two differ by no more than the judge's repeatability allows. */
  repeated: boolean;
  requests: number;
  tokens: number;
  /** Why a part has no answer; "" if all have one. */
  problem: string;
}

export interface InfluenceOffer {
  judge: string;
  cost: InfluenceCost | null;
  /** Why the judge cannot be asked; "" if it can. */
  refused: string;
  /** The result, if it was measured before. */
  known: AnswerInfluence | null;
}

/** Progress; the last step has a result or a problem. */
export interface InfluenceStep {
  done: number;
  /** 0 until the judge is identified. */
  of: number;
  result: AnswerInfluence | null;
  problem: string;
}

/** A text that matches a search. */
export interface TextMatch {
  /** Id of its query. */
  query: string;
  /** "" unless the text is a response. */
  candidate: string;
  /** "query", "response" or "item 3". */
  where: string;
  before: string;
  match: string;
  after: string;
}

// ---- Block "evaluator": the evolved evaluator that judged, mirrored in
// `src/rocketeval/evolve/result.py`. Absent if head.evaluator is "". ----

/** A question that the judge answers. */
export interface DescribedPerspective {
  id: string;
  text: string;
  /** The subject of the question. */
  kind: "response" | "query";
  /** Source of the perspective: "rule", "preset", "failures" and so on. */
  origin: string;
  /** Ids of the perspectives it was derived from; the evaluator may not use them. */
  parents: string[];
  /** The round that added it; 0 for the initial pool. */
  round: number;
  /** Instruction types it was written for; empty for any. */
  types: string[];
  form: "choice" | "graded";
  /** Its share of the surrogate's decisions, among perspectives of its kind. */
  importance: number | null;
  /** Share of folds in which it was kept. */
  stability: number | null;
}

/** A trait that distinguishes an expert's queries. */
export interface DescribedTrait {
  /** Id of a perspective on queries. */
  perspective: string;
  /** Distance from the overall mean to the expert's centroid, in the router's weighted space. */
  apart: number;
  /** Share of the expert's queries with the trait, and of all queries; null if it has no weight. */
  share: number | null;
  usual: number | null;
}

export interface DescribedExpert {
  index: number;
  /** Number of training cases assigned to this expert; null if not recorded. */
  size: number | null;
  /** One value per perspective on responses, in order; they sum to one. */
  attention: number[];
  /** The most distinctive traits first. */
  traits: DescribedTrait[];
}

export interface DescribedWeight {
  perspective: string;
  weight: number;
}

/** Validation figure of the evaluator or of one baseline. */
export interface DescribedFigure {
  name: string;
  value: Interval | null;
  note: string;
  /** Whether it is the evaluator; the others are baselines. */
  own: boolean;
}

/** Accuracy on the cases at or above a confidence threshold. */
export interface DescribedConfidence {
  threshold: number;
  /** Share of cases with at least this confidence. */
  coverage: number;
  accuracy: Interval | null;
  cases: number;
}

export interface DescribedProvenance {
  created: string;
  benchmark: string;
  /** Number of training cases with reference data. */
  cases: number | null;
  rounds: number | null;
  judge: string;
}

/** Results of the evaluator in this run. */
export interface DescribedRun {
  cases: number;
  by_expert: number[];
  /** Confidence histogram: one count per bin, and one more edge than bins. */
  confidence: { edges: number[]; counts: number[] };
  /** Cases below it need human review; null if no threshold is recommended. */
  threshold: number | null;
  to_person: number;
}

export interface EvaluatorBlock {
  /** Whether it decides between two responses or scores single responses. */
  decides: "pairs" | "responses";
  /** Whether the judge sees two responses at once or one at a time. */
  asking: "pairs" | "each";
  perspectives: DescribedPerspective[];
  /** Perspectives that others were derived from and that the evaluator does not use. */
  ancestors: DescribedPerspective[];
  experts: DescribedExpert[];
  router: DescribedWeight[];
  /** Name of the measure, such as "accuracy". */
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
  /** Link to its page, relative to the list. */
  at: string;
  /** Runs with the same benchmark (same queries) are grouped. */
  benchmark: string;
  created: string;
  state: "finished" | "going" | "paused" | "damaged";
  /** Reason why a run cannot be shown. */
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
  /** Equal if judge, method, scorer, queries and candidates are: only such runs are joined. */
  series: string;
  /** Best first. */
  ranking: { name: string; rating: Interval | null; score: Interval | null }[];
}

export interface RunsHead {
  folder: string;
  made_with: string;
  version: string;
  runs: RunLine[];
}

// ---- What changed since another run, in pages of a folder of runs ----

/** A run to compare with. */
export interface BaselineChoice {
  slug: string;
  name: string;
  created: string;
  judge: string;
  /** Why it cannot be compared; "" if it can. */
  why: string;
}

/** One candidate in both runs, with the verdict of `rocketeval compare`. */
export interface CandidateLine {
  candidate: string;
  verdict: string;
  mood: "worse" | "better" | "";
  /** Mean score of this run minus the baseline. */
  effect: Interval;
  p_value: number;
  before: number;
  now: number;
  /** Numbers of queries whose score fell, stayed within the tie margin, or rose. */
  worse: number;
  same: number;
  better: number;
  queries: number;
  /** Number of responses with another text. */
  rewritten: number;
  /** Numbers of answers that flipped; yes is the worse answer to a penalty. */
  worse_answers: number;
  better_answers: number;
}

/** One response whose score, answers or text differ. */
export interface ResponseChange {
  query: string;
  snippet: string;
  candidate: string;
  before: number;
  now: number;
  /** Numbers of answers that flipped; yes is the worse answer to a penalty. */
  worse_answers: number;
  better_answers: number;
  rewritten: boolean;
}

/** A query with another best response. */
export interface BestChange {
  query: string;
  snippet: string;
  before: string[];
  now: string[];
}

export interface DiffPage {
  base: string;
  created: string;
  judge: string;
  /** Why the runs cannot be compared; "" if they can. */
  refused: string;
  conclusion: string;
  candidates: CandidateLine[];
  /** The largest fall first. */
  changes: ResponseChange[];
  left_out: number;
  best: BestChange[];
  best_left_out: number;
  notes: string[];
  tie_margin: number;
  /** How far an answer must move, across 0.5, to count as flipped. */
  flipped: number;
}

export interface AnswerChange {
  text: string;
  before: number | null;
  now: number | null;
  /** "" if the answer did not flip. */
  flipped: "worse" | "better" | "";
}

/** One response in both runs. */
export interface ResponseDiff {
  query: string;
  text: string;
  candidate: string;
  before: string | null;
  now: string | null;
  items: AnswerChange[];
}

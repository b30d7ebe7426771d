// One query with the scores and answers of all candidates.

import type { QueryBlock } from "../contract";
import type { Report } from "../report";

export interface Odd {
  low: number | null;
  high: number | null;
  why: string;
}

/** What the answer to an item with levels, a check or "not applicable" means. */
export interface Meaning {
  words: string;
  /** Probability of "not applicable"; null if that is no answer. */
  na: number | null;
}

export class QueryResults {
  private readonly meanings = new Map<string, Meaning>();
  private readonly odds = new Map<string, Odd>();
  private readonly labels: Map<number, number>;
  private readonly disarmed: Map<number, number>;
  private readonly histories: Map<number, [string, string][]>;

  constructor(
    readonly place: number,
    readonly id: string,
    readonly block: QueryBlock,
    /** One per candidate. */
    readonly scores: (number | null)[],
    /** Candidates by items. */
    readonly answers: (number | null)[][],
  ) {
    for (const [candidate, item, low, high, why] of block.odd)
      this.odds.set(`${candidate} ${item}`, { low, high, why });
    for (const [candidate, item, words, na] of block.rubric?.answers ?? [])
      this.meanings.set(`${candidate} ${item}`, { words, na });
    this.labels = new Map(block.labels);
    this.disarmed = new Map(block.disarmed);
    this.histories = new Map(block.histories);
  }

  odd(candidate: number, item: number): Odd | undefined {
    return this.odds.get(`${candidate} ${item}`);
  }

  /** undefined for a plain yes/no question. */
  meaning(candidate: number, item: number): Meaning | undefined {
    return this.meanings.get(`${candidate} ${item}`);
  }

  label(candidate: number): number | undefined {
    return this.labels.get(candidate);
  }

  /** Number of forged delimiters or tokens that were neutralized. */
  disarmedIn(candidate: number): number {
    return this.disarmed.get(candidate) ?? 0;
  }

  /** The candidate's conversation before the query. */
  history(candidate: number): [role: string, content: string][] {
    return this.histories.get(candidate) ?? this.block.history;
  }

  hasOwnHistory(candidate: number): boolean {
    return this.histories.has(candidate);
  }

  /** Passages that only this candidate was given; undefined without any. */
  context(candidate: number): string[] | undefined {
    return this.block.contexts?.find(([each]) => each === candidate)?.[1];
  }

  /** null without a response; undefined if this page does not have the text. */
  text(candidate: number): string | null | undefined {
    return this.block.texts === null ? undefined : this.block.texts[candidate] ?? null;
  }

  /** The item with the largest spread of answers; null without a spread. */
  get mostDisputed(): number | null {
    const spreads = this.block.figures.map(({ spread }) => spread ?? -1);
    const most = Math.max(...spreads);
    return most > 0 ? spreads.indexOf(most) : null;
  }
}

export async function openQueryResults(report: Report, place: number): Promise<QueryResults> {
  const block = await report.query(place);
  const queries = await report.queries();
  const id = queries.table.id[place]!;
  if (block.cells !== null)
    return new QueryResults(place, id, block, block.cells.scores, block.cells.answers);
  const [scores, answers] = await Promise.all([report.scores(), report.answers()]);
  const candidates = report.head.candidates.map((_, candidate) => candidate);
  return new QueryResults(
    place,
    id,
    block,
    candidates.map((candidate) => scores.at(place, candidate) ?? null),
    candidates.map((candidate) => answers.of(place, candidate)),
  );
}

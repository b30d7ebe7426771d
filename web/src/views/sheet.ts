// One query with all that candidates got for it, from wherever the page has it.

import type { QueryBlock } from "../contract";
import type { Report } from "../report";

export interface Odd {
  low: number | null;
  high: number | null;
  why: string;
}

export class Sheet {
  private readonly odds = new Map<string, Odd>();
  private readonly labels: Map<number, number>;
  private readonly disarmed: Map<number, number>;
  private readonly histories: Map<number, [string, string][]>;

  constructor(
    readonly place: number,
    readonly id: string,
    readonly block: QueryBlock,
    /** One a candidate. */
    readonly scores: (number | null)[],
    /** One a candidate, each one an item. */
    readonly answers: (number | null)[][],
  ) {
    for (const [candidate, item, low, high, why] of block.odd)
      this.odds.set(`${candidate} ${item}`, { low, high, why });
    this.labels = new Map(block.labels);
    this.disarmed = new Map(block.disarmed);
    this.histories = new Map(block.histories);
  }

  odd(candidate: number, item: number): Odd | undefined {
    return this.odds.get(`${candidate} ${item}`);
  }

  label(candidate: number): number | undefined {
    return this.labels.get(candidate);
  }

  /** Forged delimiters or tokens that the judge did not get to see. */
  disarmedIn(candidate: number): number {
    return this.disarmed.get(candidate) ?? 0;
  }

  /** What the candidate's conversation was before the query. */
  history(candidate: number): [role: string, content: string][] {
    return this.histories.get(candidate) ?? this.block.history;
  }

  hasOwnHistory(candidate: number): boolean {
    return this.histories.has(candidate);
  }

  /** null: it gave no response; undefined: this page does not hold the text. */
  text(candidate: number): string | null | undefined {
    return this.block.texts === null ? undefined : this.block.texts[candidate] ?? null;
  }

  /** The item whose answers lie furthest apart; null when no answer is known. */
  get mostDisputed(): number | null {
    const spreads = this.block.figures.map(({ spread }) => spread ?? -1);
    const most = Math.max(...spreads);
    return most > 0 ? spreads.indexOf(most) : null;
  }
}

export async function openSheet(report: Report, place: number): Promise<Sheet> {
  const block = await report.query(place);
  const queries = await report.queries();
  const id = queries.table.id[place]!;
  if (block.cells !== null)
    return new Sheet(place, id, block, block.cells.scores, block.cells.answers);
  const [scores, answers] = await Promise.all([report.scores(), report.answers()]);
  const candidates = report.head.candidates.map((_, candidate) => candidate);
  return new Sheet(
    place,
    id,
    block,
    candidates.map((candidate) => scores.at(place, candidate) ?? null),
    candidates.map((candidate) => answers.of(place, candidate)),
  );
}

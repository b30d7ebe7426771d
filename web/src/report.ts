// A report: its head, and its blocks, which are opened once.

import {
  ANSWER_STEPS,
  NO_ANSWER,
  type EvaluatorBlock,
  type Head,
  type ItemsBlock,
  type LabelsBlock,
  type PairsBlock,
  type QueriesBlock,
  type QueryBlock,
} from "./contract";
import { embedded, inFolder, servedAt, unzip, type Fetcher } from "./source";

/** All queries, with the positions of their rows in the other blocks. */
export class Queries {
  readonly count: number;
  private readonly places: Map<string, number>;
  private readonly scoreRows: Int32Array;
  private readonly answerStarts: Int32Array;
  private readonly itemRows: Int32Array;

  constructor(readonly table: QueriesBlock, candidates: number) {
    this.count = table.id.length;
    this.places = new Map(table.id.map((id, place) => [id, place]));
    this.scoreRows = new Int32Array(this.count).fill(-1);
    this.answerStarts = new Int32Array(this.count).fill(-1);
    this.itemRows = new Int32Array(this.count).fill(-1);
    let scored = 0;
    let answers = 0;
    let detailed = 0;
    for (let place = 0; place < this.count; place++) {
      const detail = table.detail[place]!;
      if (detail >= 1) this.scoreRows[place] = scored++;
      if (detail >= 2) {
        this.answerStarts[place] = answers;
        answers += table.items[place]! * candidates;
        this.itemRows[place] = detailed++;
      }
    }
  }

  place(id: string): number | undefined {
    return this.places.get(id);
  }

  scoreRow(place: number): number {
    return this.scoreRows[place]!;
  }

  answerStart(place: number): number {
    return this.answerStarts[place]!;
  }

  itemRow(place: number): number {
    return this.itemRows[place]!;
  }

  /** The values of a field of a query; empty if it has none. */
  values(field: string, place: number): string[] {
    const found = this.table.slices.find(({ name }) => name === field);
    return found?.of[place]?.map((value) => found.values[value]!) ?? [];
  }

  category(place: number): string | null {
    return this.values("category", place)[0] ?? null;
  }

  detail(place: number): number {
    return this.table.detail[place]!;
  }
}

/** The scores in the page, queries by candidates. */
export class Scores {
  constructor(
    private readonly values: Float32Array,
    private readonly queries: Queries,
    private readonly candidates: number,
  ) {}

  /** null without a score; undefined if the page does not have the query's scores. */
  at(query: number, candidate: number): number | null | undefined {
    const row = this.queries.scoreRow(query);
    if (row < 0) return undefined;
    const value = this.values[row * this.candidates + candidate]!;
    return Number.isNaN(value) ? null : value;
  }

  ofCandidate(candidate: number): { query: number; score: number }[] {
    const found = [];
    for (let query = 0; query < this.queries.count; query++) {
      const score = this.at(query, candidate);
      if (typeof score === "number") found.push({ query, score });
    }
    return found;
  }
}

/** The answers in the page. */
export class Answers {
  constructor(
    private readonly values: Uint16Array,
    private readonly queries: Queries,
  ) {}

  /** One per checklist item; empty if the page does not have the query's answers. */
  of(query: number, candidate: number): (number | null)[] {
    const start = this.queries.answerStart(query);
    if (start < 0) return [];
    const items = this.queries.table.items[query]!;
    const from = start + candidate * items;
    return Array.from(this.values.subarray(from, from + items), (value) =>
      value === NO_ANSWER ? null : value / ANSWER_STEPS,
    );
  }
}

export class Report {
  private readonly opened = new Map<string, Promise<unknown>>();
  private readonly fetcher: Fetcher;
  readonly places: Map<string, number>;

  constructor(readonly head: Head) {
    this.fetcher = { embedded, folder: inFolder, served: servedAt(head.live?.version ?? "") }[head.blocks];
    this.places = new Map(head.candidates.map(({ name }, place) => [name, place]));
  }

  queries(): Promise<Queries> {
    return this.once("queries", async () =>
      new Queries(await this.json<QueriesBlock>("queries"), this.head.candidates.length),
    );
  }

  scores(): Promise<Scores> {
    return this.once("scores", async () => {
      const [queries, bytes] = await Promise.all([this.queries(), this.bytes("scores")]);
      return new Scores(new Float32Array(bytes), queries, this.head.candidates.length);
    });
  }

  answers(): Promise<Answers> {
    return this.once("answers", async () => {
      const [queries, bytes] = await Promise.all([this.queries(), this.bytes("answers")]);
      return new Answers(new Uint16Array(bytes), queries);
    });
  }

  items(): Promise<ItemsBlock> {
    return this.once("items", () => this.json<ItemsBlock>("items"));
  }

  labels(): Promise<LabelsBlock> {
    return this.once("labels", () => this.json<LabelsBlock>("labels"));
  }

  pairs(): Promise<PairsBlock> {
    return this.once("pairs", () => this.json<PairsBlock>("pairs"));
  }

  evaluator(): Promise<EvaluatorBlock> {
    return this.once("evaluator", () => this.json<EvaluatorBlock>("evaluator"));
  }

  /** Not cached, because thousands of queries with responses would fill the memory. */
  query(place: number): Promise<QueryBlock> {
    return this.json<QueryBlock>(`query-${place}`);
  }

  private async bytes(name: string): Promise<ArrayBuffer> {
    return unzip(await this.fetcher(name));
  }

  private async json<T>(name: string): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(name))) as T;
  }

  private once<T>(name: string, open: () => Promise<T>): Promise<T> {
    const before = this.opened.get(name) as Promise<T> | undefined;
    if (before) return before;
    const opening = open();
    // Retry a failed block next time.
    opening.catch(() => this.opened.delete(name));
    this.opened.set(name, opening);
    return opening;
  }
}

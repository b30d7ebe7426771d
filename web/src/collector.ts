// Where labels go: to the server of `rocketeval view --label`, or into this browser, from where they
// can be downloaded in the same format.

import type { LabelProgress, LabelQueue, QueuedPair } from "./contract";
import { isStored, remember, remembered } from "./parts/remembered";
import { save } from "./parts/download";
import { fetched } from "./parts/pulse";
import type { Report } from "./report";

export type Winner = "a" | "b" | "tie";

export type LabelRecord =
  | { kind: "vote"; query: string; a: string; b: string; winner: Winner }
  | { kind: "label"; query: string; candidate: string; value: number }
  | { kind: "answer"; query: string; candidate: string; item: number; text: string; p_yes: number | null }
  | { kind: "undo"; id: string };

export interface Collector {
  isServed: boolean;
  /** Whether the labels outlive this tab. */
  isLasting(): boolean;
  queue(): Promise<LabelQueue>;
  /** Resolves once the record is stored. */
  send(record: LabelRecord): Promise<LabelProgress>;
}

export const collectorOf = (report: Report): Collector =>
  report.head.labeler ? served : new Kept(report);

const served: Collector = {
  isServed: true,
  isLasting: () => true,
  queue: () => fetched<LabelQueue>("label"),
  async send(record) {
    const answer = await fetch("label", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(record),
    });
    if (!answer.ok) throw new Error(answer.status === 400 ? await answer.text() : `The server returned ${answer.status}.`);
    return (await answer.json()) as LabelProgress;
  },
};

/** A record as it is kept in the browser and downloaded. */
export type KeptRecord = Record<string, unknown> & { kind: string; id: string };

/** Keeps labels in this browser; without a server, nothing is measured. */
class Kept implements Collector {
  readonly isServed = false;
  private readonly key: string;

  constructor(private readonly report: Report) {
    this.key = `labels ${report.head.run} ${report.head.created}`;
  }

  isLasting(): boolean {
    return isStored(this.key);
  }

  records(): KeptRecord[] {
    try {
      return JSON.parse(remembered(this.key) || "[]") as KeptRecord[];
    } catch {
      return [];
    }
  }

  async queue(): Promise<LabelQueue> {
    const voted = new Set(this.records().filter(({ kind }) => kind === "vote").map(pairKey));
    const [queries, scores] = await Promise.all([this.report.queries(), this.report.scores()]);
    // Without a score, the response may be missing, and the judge cannot be compared with a vote.
    const isScored = (query: string, name: string) =>
      typeof scores.at(queries.place(query)!, this.report.places.get(name)!) === "number";
    const ids = queries.table.id.filter((_, place) => queries.detail(place) === 3);
    const names = this.report.head.candidates.filter(({ rank }) => rank !== null).slice(0, 6).map(({ name }) => name);
    const pairs = drawn(ids, names)
      .filter(({ query, a, b }) => isScored(query, a) && isScored(query, b))
      .filter((pair) => !voted.has(pairKey(stored({ kind: "vote", winner: "a", ...pair }, ""))));
    return { pairs: pairs.slice(0, 60), progress: this.progress("") };
  }

  async send(record: LabelRecord): Promise<LabelProgress> {
    const kept = this.records();
    if (record.kind === "undo") {
      remember(this.key, JSON.stringify(kept.filter(({ id }) => id !== record.id)));
      return this.progress("");
    }
    const row = stored(record, remembered("labeler"));
    remember(this.key, JSON.stringify([...kept, row]));
    return this.progress(row.id);
  }

  progress(saved: string): LabelProgress {
    const kept = this.records();
    const count = (wanted: string) => kept.filter(({ kind }) => kind === wanted).length;
    return {
      labeler: remembered("labeler"), votes: count("vote"), labels: count("label"), wrong: count("answer"),
      agreement: null, decided: 0, needed: null, estimates: [], saved,
    };
  }
}

/** Downloads the labels that this browser keeps, as JSON lines. */
export function download(collector: Collector, name: string): void {
  if (!(collector instanceof Kept)) return;
  const by = remembered("labeler") || "human";
  const rows = collector.records().map((row) => JSON.stringify({ ...row, by }));
  save(`${name}.jsonl`, new Blob([rows.join("\n") + "\n"], { type: "application/jsonl" }));
}

/** The record in the format of the file of collected labels. */
export function stored(record: Exclude<LabelRecord, { kind: "undo" }>, by: string): KeptRecord {
  const about = { id: uuid(), at: new Date().toISOString(), by, query_id: record.query };
  if (record.kind === "vote")
    return { kind: "vote", ...about, candidate_a: record.a, candidate_b: record.b, winner: record.winner };
  const { query: _, ...rest } = record;
  return { ...rest, ...about };
}

/** A random UUID (version 4), also over plain http, where `crypto.randomUUID` does not exist. */
function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const pairKey = (row: KeptRecord) =>
  JSON.stringify([row["query_id"], ...[String(row["candidate_a"]), String(row["candidate_b"])].sort()]);

/** All pairs in an order that looks random and is the same on each visit. */
export function drawn(queries: string[], names: string[]): QueuedPair[] {
  const pairs = queries.flatMap((query) =>
    names.flatMap((a, place) => names.slice(place + 1).map((b) => ({ query, a, b }))),
  );
  const random = seeded(pairs.length);
  const keyed = pairs.map((pair) => ({ pair, key: random(), isSwapped: random() < 0.5 }));
  return keyed
    .sort((one, other) => one.key - other.key)
    .map(({ pair, isSwapped }) => (isSwapped ? { ...pair, a: pair.b, b: pair.a } : pair));
}

function seeded(seed: number): () => number {
  let state = (seed + 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Labels kept by the page: which pairs are offered, and what happens without storage.

import assert from "node:assert/strict";
import { test } from "node:test";
import { collectorOf, stored, type LabelRecord } from "../src/collector";
import type { QueriesBlock } from "../src/contract";
import { Queries, Scores, type Report } from "../src/report";
import { isStored, remember, remembered } from "../src/parts/remembered";

const table = { id: ["q0", "q1"], slices: [], items: [1, 1], detail: [3, 3] } as unknown as QueriesBlock;
const queries = new Queries(table, 3);
const report = (run: string) => ({
  head: { labeler: "", run, created: "", candidates: ["x", "y", "z"].map((name, place) => ({ name, rank: place + 1 })) },
  places: new Map([["x", 0], ["y", 1], ["z", 2]]),
  queries: async () => queries,
  scores: async () => new Scores(new Float32Array([4, 6, 8, 6, NaN, 5]), queries, 3),
}) as unknown as Report;

/** A storage in memory that may refuse writes. */
function storage(isFull: boolean) {
  const kept = new Map<string, string>();
  const setItem = (name: string, value: string) => {
    if (isFull) throw new Error("full");
    kept.set(name, value);
  };
  return { getItem: (name: string) => kept.get(name) ?? null, setItem, removeItem: (name: string) => kept.delete(name) };
}

function withStorage(found: unknown): void {
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get: () => {
      if (!found) throw new Error("blocked");
      return found;
    },
  });
}

test("only pairs with two scored responses are offered", async () => {
  withStorage(storage(false));
  const { pairs } = await collectorOf(report("pairs")).queue();
  assert.equal(pairs.length, 4);
  const ofSecond = pairs.filter(({ query }) => query === "q1").map(({ a, b }) => [a, b].sort());
  assert.deepEqual(ofSecond, [["x", "z"]]);
});

test("without storage, labels last in the tab and are not called lasting", async () => {
  for (const found of [null, storage(true)]) {
    withStorage(found);
    const run = `blocked ${found === null}`;
    const [first, second] = [collectorOf(report(run)), collectorOf(report(run))];
    const vote: LabelRecord = { kind: "vote", query: "q0", a: "x", b: "y", winner: "a" };
    assert.equal((await first.send(vote)).votes, 1);
    const { votes, saved } = await second.send({ ...vote, b: "z" });
    assert.equal(votes, 2);
    assert.deepEqual([first.isLasting(), second.isLasting()], [false, false]);
    assert.equal((await first.queue()).pairs.length, 2);
    assert.equal((await first.send({ kind: "undo", id: saved })).votes, 1);
  }
});

test("a value is stored again as soon as the browser allows it", () => {
  withStorage(null);
  remember("name", "Ada");
  assert.deepEqual([remembered("name"), isStored("name")], ["Ada", false]);
  const free = storage(false);
  withStorage(free);
  remember("name", "Bea");
  assert.deepEqual([free.getItem("rocketeval-name"), isStored("name")], ["Bea", true]);
});

test("over plain http, where there is no crypto.randomUUID, labels have distinct ids", (t) => {
  t.mock.method(globalThis.crypto, "randomUUID", () => { throw new TypeError("not a function"); });
  const vote: LabelRecord = { kind: "vote", query: "q0", a: "x", b: "y", winner: "a" };
  const ids = [stored(vote, "me").id, stored(vote, "me").id];
  assert.notEqual(ids[0], ids[1]);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

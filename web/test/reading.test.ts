// The list of queries: sorting, filters and slices.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueriesBlock } from "../src/contract";
import { Queries, Scores } from "../src/report";
import { listed, readingOf, type Tables } from "../src/views/reading";
import { chosenField, sliceOptions, sliceTest } from "../src/slices";

const block: QueriesBlock = {
  id: ["q0", "q1", "q2", "q3"],
  slices: [
    { name: "category", values: ["code", "math"], of: [[1], [0], [1], []] },
    { name: "tag", values: ["easy", "hard: very"], of: [[0, 1], [], [1], []] },
  ],
  snippet: ["Add two numbers", "Sort a list", "Prove it", "Write a poem"],
  mean: [5, 7, null, 6],
  spread: [1, 2, null, 0.5],
  missing: [0, 0, 2, 0],
  items: [1, 1, 1, 1],
  detail: [1, 1, 1, 1],
};
const queries = new Queries(block, 2);
const scores = new Scores(new Float32Array([4, 6, 8, 6, NaN, NaN, 6, 6]), queries, 2);
const labels = { query: [0, 3], candidate: [0, 0], score: [4, 6], label: [9, 6], left_out: 0 };
const tables: Tables = { queries, scores, labels };
const places = new Map([["x", 0], ["y", 1]]);
const list = (fields: string) => listed(readingOf(`#/read?${fields}`, places), tables);

test("each order, with unknown values last", () => {
  assert.deepEqual(list(""), [1, 0, 3, 2]);
  assert.deepEqual(list("sort=mean"), [0, 3, 1, 2]);
  assert.deepEqual(list("sort=gap"), [0, 1, 3, 2]);
  assert.deepEqual(list("sort=low"), [0, 3, 1, 2]);
  assert.deepEqual(list("sort=low&c=y"), [0, 1, 3, 2]);
  assert.deepEqual(list("sort=label"), [0, 3, 1, 2]);
  assert.deepEqual(list("sort=missing"), [2, 0, 1, 3]);
  assert.deepEqual(list("sort=benchmark"), [0, 1, 2, 3]);
});

test("words, slices and conditions keep what matches", () => {
  assert.deepEqual(list("words=LIST+sort"), [1]);
  assert.deepEqual(list("in=category:math"), [0, 2]);
  assert.deepEqual(list("in=nothing:here&sort=benchmark"), [0, 1, 2, 3]);
  assert.deepEqual(list("only=first"), [1]);
  assert.deepEqual(list("only=second"), [0]);
  assert.deepEqual(list("only=labeled"), [0, 3]);
  assert.deepEqual(list("only=missing"), [2]);
});

test("slices of every field are offered with their sizes", () => {
  assert.deepEqual(sliceOptions(queries), [
    ["", "All queries"],
    ["category:code", "category: code (1)"],
    ["category:math", "category: math (2)"],
    ["tag:easy", "tag: easy (1)"],
    ["tag:hard: very", "tag: hard: very (2)"],
  ]);
});

test("a query may have several values of a field, or none", () => {
  const inSlice = (slice: string) => [0, 1, 2, 3].filter(sliceTest(queries, slice));
  assert.deepEqual(inSlice("tag:hard: very"), [0, 2]);
  assert.deepEqual(inSlice("tag:gone"), []);
  assert.deepEqual(inSlice("nothing"), [0, 1, 2, 3]);
  assert.equal(queries.category(3), null);
  assert.deepEqual(queries.values("tag", 0), ["easy", "hard: very"]);
});

test("the first field with an interval is chosen, unless the address names one", () => {
  const mean = (low: number | null) => ({ value: 5, low, high: low === null ? null : 6 });
  const field = (name: string, low: number | null) => ({
    field: name, note: "", slices: [{ field: name, name: "v", queries: 9, means: [null, mean(low)] }],
  });
  const fields = [field("category", null), field("length", 4)];
  assert.equal(chosenField(fields, "")?.field, "length");
  assert.equal(chosenField(fields, "category")?.field, "category");
  assert.equal(chosenField(fields.slice(0, 1), "gone")?.field, "category");
  assert.equal(chosenField([], ""), undefined);
});

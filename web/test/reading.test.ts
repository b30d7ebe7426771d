// The list of queries: sorting, filters and slices.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueriesBlock } from "../src/contract";
import { Queries, Scores } from "../src/report";
import { listed, readingOf, sliceOptions, type Tables } from "../src/views/reading";

const block: QueriesBlock = {
  id: ["q0", "q1", "q2", "q3"],
  category: ["math", "code", "math", null],
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

test("slices are offered with their sizes, the largest first", () => {
  assert.deepEqual(sliceOptions(queries).map(([value]) => value), ["", "category:math", "category:code"]);
});

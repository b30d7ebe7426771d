// The picture of the leaderboard: what it says, and that names cannot add markup.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Candidate, Head } from "../src/contract";
import { timeTicks } from "../src/charts/costs";
import { boardImage, brackets, wrapped } from "../src/parts/board_image";

const candidate = (name: string, group: number | null, rating: number | null): Candidate => ({
  name, rank: rating === null ? null : 1, rank_low: 1, rank_high: 2, group, beats_next: null,
  rating: rating === null ? null : { value: rating, low: rating - 50, high: null },
  score: { value: 7.25, low: 6, high: 8 }, queries: 3, missing: 0, label: null, reference: null, quantiles: null,
});
const head = (candidates: Candidate[], more: Partial<Head> = {}) => ({
  run: "night<ly>", judge: "small & fast", benchmark: "demo", finished: "2026-03-04T10:00:00Z", created: "",
  conclusion: "a is best.", provisional: "", level: 0.95, scale: [1, 10], sizes: [["queries", 1234]],
  candidates, made_with: "RocketEval 1", ...more,
}) as Head;

test("run, judge, date, result, ratings and scores can be read", () => {
  const { svg, width, height } = boardImage(head([candidate("a", 1, 1010), candidate("b", null, null)]));
  for (const words of ["night&lt;ly&gt;", "Judge small &amp; fast", "1,234 queries of demo", "Mar 4, 2026", "a is best.",
    "1010 (960", "7.25 (6.00\u20138.00)", "not ranked", "95% interval"])
    assert.ok(svg.includes(words), words);
  assert.ok(svg.includes(`viewBox="0 0 ${width} ${height}"`));
});

test("names stay text", () => {
  const { svg } = boardImage(head([candidate('</text><script>"\u0000\ud800', 1, 1000)]));
  assert.ok(!svg.includes("<script"));
  assert.ok(!/[\u0000\ud800]/.test(svg));
});

test("a page that is not final says so, and long lists are cut", () => {
  const many = Array.from({ length: 40 }, (_, place) => candidate(`m${place}`, place, 1000));
  const { svg } = boardImage(head(many, { provisional: "Half is judged." }));
  assert.ok(svg.includes("Not final. Half is judged."));
  assert.ok(svg.includes("The first 30 of 40 candidates."));
  assert.ok(!svg.includes(">m30<"));
});

test("brackets join groups of two or more", () => {
  const rows = [candidate("a", 1, 9), candidate("b", 1, 9), candidate("c", 2, 9), candidate("d", 3, 9), candidate("e", 3, 9)];
  assert.equal(brackets(rows, 0).length, 2);
  assert.equal(brackets(rows.slice(2, 4), 0).length, 0);
});

test("lines are no longer than allowed", () => {
  assert.deepEqual(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
  assert.ok(wrapped("x".repeat(50), 10).every((line) => line.length <= 10));
});

test("ticks of times leave room for their labels", () => {
  assert.deepEqual(timeTicks(0.01, 4, 600), [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]);
  assert.deepEqual(timeTicks(0.01, 4, 170), [0.01, 0.1, 1]);
  assert.deepEqual(timeTicks(0.001, 5000, 170), [0.001, 1, 1000]);
  assert.deepEqual(timeTicks(0.1, 0.1, 170), [0.1]);
});

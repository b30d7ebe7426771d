// Which parts move an answer: the stream of the server, the cost in words, and the order of parts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { InfluenceCost, AnswerInfluence, PieceInfluence } from "../src/contract";
import {
  changeWords, costWords, divisionWords, ending, excerpt, linesIn, ranked, strength, unanswered,
} from "../src/influence";

const cost: InfluenceCost = {
  requests: 5, contact: 0, units: 4, asked: 4, tokens: 1200, cost: null, currency: "",
};
const piece = (text: string, change: number | null, clear = true): PieceInfluence => ({
  text, unit: true, p_yes: change === null ? null : 0.8 - change, change, clear, inapplicable: false,
});
const result: AnswerInfluence = {
  pieces: [piece("One. ", 0.1), { ...piece("\n", null, false), unit: false }, piece("Two. ", -0.4), piece("Three.", 0.02, false)],
  units: 3, asked: 3, stored: 0.8, whole: 0.8, repeated: true, requests: 4, tokens: 100, problem: "",
};

test("lines arrive whole, wherever the stream is cut", async () => {
  const bytes = new TextEncoder().encode('{"a":"\u00e9\u{1f600}"}\n{"b":2}\n\n{"c":3}');
  for (let size = 1; size < 12; size++) {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const lines: string[] = [];
    for await (const line of linesIn(stream)) lines.push(line);
    assert.deepEqual(lines.map((line) => JSON.parse(line)), [{ a: "\u00e9\u{1f600}" }, { b: 2 }, { c: 3 }]);
  }
});

test("the cost has requests, tokens and money, or says that the price is unknown", () => {
  assert.deepEqual(costWords(cost), [
    "5 requests with about 1,200 prompt tokens.", "The price of this judge is not known.",
  ]);
  const [first, second] = costWords({ ...cost, contact: 24, cost: 0.0123, currency: "USD" });
  assert.match(first!, /up to 24 short requests/);
  assert.equal(second, "Estimated cost: 0.0123\u00a0USD.");
});

test("joined neighbors are said", () => {
  assert.match(divisionWords({ units: 4, asked: 4 }), /^The response has 4 parts:/);
  assert.match(divisionWords({ units: 90, asked: 40 }), /90 parts\. Neighbors are left out together, as 40 blocks/);
});

test("the strongest part comes first, and unclear ones are left out", () => {
  assert.deepEqual(ranked(result).map(({ place }) => place), [2, 0]);
  assert.equal(strength(result.pieces[2]!, result), 100);
  assert.equal(strength(result.pieces[0]!, result), 25);
});

test("the direction is in words, not only in color", () => {
  assert.equal(changeWords(piece("", -0.4)), "\u25bc lowers by 0.40");
  assert.equal(changeWords(piece("", 0.1)), "\u25b2 raises by 0.10");
});

test("a part without which the item does not apply comes first, and is not unanswered", () => {
  const needed = { ...piece("Four.", null), inapplicable: true };
  const more = { ...result, pieces: [...result.pieces, needed, piece("Five.", null, false)] };
  assert.deepEqual(ranked(more).map(({ place }) => place), [4, 2, 0]);
  assert.equal(changeWords(needed), "\u25c6 not applicable without it");
  assert.equal(unanswered(more), 1);
});

test("an excerpt is one line and does not cut a character", () => {
  assert.equal(excerpt("a\n  b"), "a b");
  assert.equal(excerpt("\u{1f600}".repeat(9), 3), "\u{1f600}\u{1f600}\u2026");
  assert.deepEqual(ending("One. \n"), ["One.", " \n"]);
});

// Search in a file that leaves out details of some queries.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueriesBlock, QueryBlock, TextMatch } from "../src/contract";
import { search } from "../src/parts/search";
import { Queries, type Report } from "../src/report";

const table = {
  id: ["whole", "no texts", "line"], slices: [], items: [1, 1, 1], detail: [3, 2, 0],
  snippet: ["Why the sky", "Why the sea", "Why the zebra"],
} as unknown as QueriesBlock;
const texts = ["Why the sky?", "Why the sea?", "Why the zebra?"];
const report = (detail: number[]) => {
  const queries = new Queries({ ...table, detail } as QueriesBlock, 1);
  return {
    head: { blocks: "embedded", candidates: [{ name: "x" }] },
    queries: async () => queries,
    query: async (place: number) => {
      assert.ok(detail[place]! >= 2);
      return { text: texts[place], items: ["Is it right?"], texts: detail[place] === 3 ? ["An answer."] : null } as QueryBlock;
    },
  } as unknown as Report;
};

async function searched(words: string, detail = [3, 2, 0]): Promise<[queries: string[], limits: string]> {
  let found: TextMatch[] = [];
  const limits = await search(report(detail), words, new AbortController().signal, (matches) => (found = matches));
  return [found.map(({ query }) => query), limits];
}

test("the beginning of a query is searched if nothing else of it is in the file", async () => {
  assert.deepEqual((await searched("zebra"))[0], ["line"]);
  assert.deepEqual((await searched("why the"))[0], ["whole", "no texts", "line"]);
  assert.deepEqual((await searched("answer"))[0], ["whole"]);
});

test("queries that are not wholly in the file are counted", async () => {
  assert.match((await searched("nothing"))[1], /^2 of 3 queries are only partly in this file/);
  assert.match((await searched("sky", [3, 3, 1]))[1], /^1 of 3 queries is only partly in this file/);
  assert.equal((await searched("nothing", [3, 3, 3]))[1], "");
});

// Changes between two runs: the list, its filters, the address, and which runs are joined.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResponseChange, RunLine } from "../src/contract";
import { isAfter, moment } from "../src/format";
import { pageOf } from "../src/routes";
import { changingOf, listedChanges } from "../src/views/change_list";
import { earlierIn, groupsOf, measuredIn, sharing, slugOf } from "../src/views/run_groups";

const change = (query: string, candidate: string, before: number, now: number, more = {}): ResponseChange => ({
  query, snippet: query, candidate, before, now, worse_answers: 0, better_answers: 0, rewritten: false, ...more,
});
const changes = [
  change("q0", "x", 5, 7, { better_answers: 1 }),
  change("q1", "x", 5, 5.05, { rewritten: true }),
  change("q2", "y", 9, 3, { worse_answers: 2, rewritten: true }),
  change("q3", "y", 6, 5),
];
const list = (fields: string) =>
  listedChanges(changes, changingOf(`#/changes?${fields}`), 0.1).map(({ query }) => query);

test("regressions come first, and rises first if only rises are shown", () => {
  assert.deepEqual(list(""), ["q2", "q3", "q1", "q0"]);
  assert.deepEqual(list("only=worse"), ["q2", "q3"]);
  assert.deepEqual(list("only=better"), ["q0"]);
});

test("flipped answers, other texts and one candidate", () => {
  assert.deepEqual(list("only=flipped"), ["q2", "q0"]);
  assert.deepEqual(list("only=rewritten"), ["q2", "q1"]);
  assert.deepEqual(list("of=x&only=worse"), []);
  assert.deepEqual(list("of=x&only=unknown"), ["q1", "q0"]);
});

test("another filter is the same page, another response is not", () => {
  const page = pageOf("#/changes?base=old&q=q1&c=x");
  assert.equal(page, pageOf("#/changes?base=old&q=q1&c=x&only=worse"));
  assert.notEqual(page, pageOf("#/changes?base=old&q=q1&c=y"));
});

const run = (name: string, created: string, series: string, state = "finished") =>
  ({ name, at: `run/${name}/`, created, series, state, benchmark: "b", ranking: [] }) as unknown as RunLine;

test("a run is compared with the newest earlier run of its series", () => {
  const runs = [
    run("new", "2026-04", "s"), run("other-judge", "2026-03", "t"), run("going", "2026-02", "s", "going"),
    run("old", "2026-01", "s"),
  ];
  const [group] = groupsOf(runs);
  assert.equal(slugOf(earlierIn(group!, group!.runs[0]!)!), "old");
  assert.equal(earlierIn(group!, group!.runs[1]!), null);
  assert.equal(earlierIn(group!, group!.runs[3]!), null);
});

test("runs of one second keep the order of the server", () => {
  const runs = ["v10", "v2", "v1"].map((name) => run(name, "2026-04-01T00:00:00+00:00", "s"));
  const [group] = groupsOf(runs);
  assert.deepEqual(group!.runs.map(({ name }) => name), ["v10", "v2", "v1"]);
  assert.equal(slugOf(earlierIn(group!, group!.runs[0]!)!), "v2");
});

test("runs with a single candidate are shown by its score, because it has no matches", () => {
  const rated = (...names: string[]) =>
    ({ ranking: names.map((name) => ({ name, rating: { value: 1000, low: null, high: null } })) }) as unknown as RunLine;
  assert.equal(measuredIn([rated("a", "b")]), "rating");
  assert.equal(measuredIn([rated("a", "b"), rated("a")]), "score");
});

test("a run that shares no candidate has no place in the history", () => {
  const named = (...names: string[]) => ({ ranking: names.map((name) => ({ name })) }) as unknown as RunLine;
  const [one, two, other] = [named("a", "b"), named("a"), named("c")] as const;
  assert.deepEqual(sharing([one, other, two]), [one, two]);
  assert.deepEqual(sharing([one, other]), []);
});

test("a baseline from later the same day is recognized", () => {
  assert.ok(isAfter("2026-04-01T12:00:01+00:00", "2026-04-01T12:00:00+00:00"));
  assert.ok(!isAfter("2026-04-01T12:00:00+00:00", "2026-04-01T12:00:00+00:00"));
  assert.ok(!isAfter("", "2026-04-01T12:00:00+00:00"));
  assert.match(moment("2026-04-01T12:05:00"), /^Apr 1, 2026, 12:05$/);
});

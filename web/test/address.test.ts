// Addresses: names survive, older addresses move, unknown values are ignored.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, movedTo, pageOf, to, withFields } from "../src/routes";
import { readingOf } from "../src/views/reading";

const ODD = ["a/b?c&d=e#f", "100%", "ключ", "<script>", "x y+z", "a\ud800b"];

test("any name survives in a path and in a field", () => {
  for (const name of ODD) {
    const clean = name.toWellFormed();
    assert.deepEqual(addressOf(to.candidate(name)).parts, ["candidate", clean]);
    const { fields } = addressOf(to.read({ q: name, c: [name, "other"] }));
    assert.equal(fields.get("q"), clean);
    assert.deepEqual(fields.getAll("c"), [clean, "other"]);
  }
});

test("an invalid address has no parts", () => {
  assert.equal(addressOf("#/%E0%A4%A").parts, null);
  assert.deepEqual(addressOf("").parts, [""]);
});

test("older addresses move to the reader, current ones stay", () => {
  assert.equal(movedTo(addressOf("#/queries")), "#/read");
  assert.equal(movedTo(addressOf("#/query/a%2Fb")), "#/read?q=a%2Fb");
  assert.equal(movedTo(addressOf("#/response/x/q1")), "#/read?q=q1&c=x");
  assert.equal(movedTo(addressOf("#/read?q=q1")), null);
});

test("fields are changed, removed and kept", () => {
  const hash = "#/read?q=one&c=x&c=y&sort=gap";
  assert.equal(withFields(hash, { q: "two", sort: "" }), "#/read?q=two&c=x&c=y");
  assert.equal(withFields(hash, { c: ["z"] }), "#/read?q=one&c=z&sort=gap");
});

test("a page is its path, and in the reader the open query", () => {
  assert.equal(pageOf("#/items?sort=low"), "#/items");
  assert.equal(pageOf("#/read?q=one&look=raw"), pageOf("#/read?look=diff&q=one"));
  assert.notEqual(pageOf("#/read?q=one"), pageOf("#/read?q=two"));
});

test("a reading ignores what it does not know", () => {
  const places = new Map([["x", 0], ["y", 1], ["z", 2]]);
  const reading = readingOf("#/read?c=z&c=nobody&c=z&sort=odd&look=odd&only=odd", places);
  assert.deepEqual(reading.candidates, [2]);
  assert.deepEqual([reading.sort, reading.look, reading.only], ["spread", "rendered", ""]);
  assert.deepEqual(readingOf("#/read", places).candidates, [0, 1]);
});

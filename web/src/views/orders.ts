// Sort orders and categories of queries.

import type { Queries } from "../report";
import type { Options } from "../parts/choice";
import { wordsIn } from "../parts/words_box";

/** Sorted by a number, unknown values last; ties in benchmark order. */
export function byNumber(places: number[], of: (place: number) => number | null): number[] {
  const known = (place: number) => of(place) ?? Infinity;
  return [...places].sort((a, b) => Math.sign(known(a) - known(b)) || a - b);
}

/** Options of the category select; "" means all. */
export function categories(queries: Queries): Options<string> {
  const counts = new Map<string, number>();
  for (const category of queries.table.category)
    if (category !== null) counts.set(category, (counts.get(category) ?? 0) + 1);
  const names = [...counts.keys()].sort((a, b) => a.localeCompare(b, "en"));
  return [["", "All"], ...names.map((name) => [name, `${name} (${counts.get(name)})`] as const)];
}

/** Returns a test for queries that match the category and the words; "" means any. */
export function isWanted({ table }: Queries, category: string, words: string) {
  const found = wordsIn(words);
  const text = (place: number) =>
    `${table.id[place]} ${table.category[place] ?? ""} ${table.snippet[place]}`.toLowerCase();
  return (place: number) =>
    (!category || table.category[place] === category) && (!words || found(text(place)));
}

// Slices of the queries: those with the same value of a field, such as the category.

import type { Head, Interval, SliceMeans } from "./contract";
import type { Options } from "./parts/choice";
import { wordsIn } from "./parts/words_box";
import type { Queries } from "./report";

/** The address of a slice, as "field:value". */
export const sliceOf = (field: string, value: string) => `${field}:${value}`;

/** Returns a test for queries in a slice; "" and unknown fields mean all. */
export function sliceTest({ table }: Queries, slice: string): (place: number) => boolean {
  // Names of fields may have a colon.
  const field = table.slices.find(({ name }) => slice.startsWith(`${name}:`));
  if (!field) return () => true;
  const wanted = field.values.indexOf(slice.slice(field.name.length + 1));
  return (place) => field.of[place]!.includes(wanted);
}

/** Options of the slice select, in the order of the fields and their values; "" means all. */
export function sliceOptions({ table }: Queries): Options<string> {
  const options: [string, string][] = [["", "All queries"]];
  for (const { name, values, of } of table.slices) {
    const counts = values.map(() => 0);
    for (const own of of) for (const value of own) counts[value]!++;
    options.push(...values.map((value, place) =>
      [sliceOf(name, value), `${name}: ${value} (${counts[place]})`] as [string, string]));
  }
  return options;
}

/** What words are searched in. */
export const searchedText = (queries: Queries, place: number) =>
  `${queries.table.id[place]} ${queries.category(place) ?? ""} ${queries.table.snippet[place]}`.toLowerCase();

/** Returns a test for queries that match the slice and the words; "" means any. */
export function isWanted(queries: Queries, slice: string, words: string) {
  const found = wordsIn(words);
  const inSlice = sliceTest(queries, slice);
  return (place: number) => inSlice(place) && (!words || found(searchedText(queries, place)));
}

export const isBounded = (mean: Interval | null) => mean !== null && mean.low !== null && mean.high !== null;

type SlicedField = { field: string; slices: SliceMeans[]; note: string };

/** The chosen field, or else the first one with an interval, or the first one. */
export function chosenField(fields: SlicedField[], wanted: string): SlicedField | undefined {
  const isSure = ({ slices }: SlicedField) => slices.some(({ means }) => means.some(isBounded));
  return fields.find(({ field }) => field === wanted) ?? fields.find(isSure) ?? fields[0];
}

/** The fields with means, each with its slices and its note. */
export function slicedFields(head: Head): SlicedField[] {
  const names = [...new Set(head.slices.map(({ field }) => field))];
  return names.map((field, place) => ({
    field,
    slices: head.slices.filter((slice) => slice.field === field),
    note: `${head.slice_notes[place] ?? ""} Means without an interval have too few queries, or equal scores on all.`,
  }));
}

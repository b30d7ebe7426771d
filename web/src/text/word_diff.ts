// Word-level differences of two texts, in any script.

import { diffArrays } from "diff";

export interface Part {
  text: string;
  kind: "same" | "only";
}

/** Longer texts are not compared, because comparing takes quadratic time. */
const MOST_WORDS = 12_000;
const MOST_EDITS = 4_000;

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

export const wordsOf = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment);

/** The parts of each text, with what the other text does not have; null if they are too long. */
export function wordDiff(first: string, second: string): [Part[], Part[]] | null {
  const [a, b] = [wordsOf(first), wordsOf(second)];
  if (a.length + b.length > MOST_WORDS) return null;
  const changes = diffArrays(a, b, { maxEditLength: MOST_EDITS });
  if (!changes) return null;
  const sides: [Part[], Part[]] = [[], []];
  for (const { value, added, removed } of changes) {
    const text = value.join("");
    if (!added) sides[0].push({ text, kind: removed ? "only" : "same" });
    if (!removed) sides[1].push({ text, kind: added ? "only" : "same" });
  }
  return sides;
}

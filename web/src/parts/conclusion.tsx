// The result of the ranking in a sentence, with the candidates' names emphasized.

import type { Head } from "../contract";
import { Name, Sentence } from "./words";

/** The sentence names only candidates from the top of the leaderboard. */
const NAMED = 8;

export function Conclusion({ head }: { head: Head }) {
  const names = head.candidates.slice(0, NAMED).map(({ name }) => name);
  return (
    <p class="conclusion">
      {partsOf(head.conclusion, names).map(({ text, isName }) =>
        isName ? <b><Name>{text}</Name></b> : <Sentence>{text}</Sentence>,
      )}
    </p>
  );
}

interface Part {
  text: string;
  isName: boolean;
}

/** Splits a sentence at the names in it; a longer name wins over a shorter one in it. */
export function partsOf(sentence: string, names: string[]): Part[] {
  const longest = names.filter(Boolean).sort((a, b) => b.length - a.length);
  const parts: Part[] = [];
  let from = 0;
  let at = 0;
  while (at < sentence.length) {
    const name = longest.find((each) => isAt(sentence, each, at));
    if (name === undefined) {
      at += 1;
      continue;
    }
    if (at > from) parts.push({ text: sentence.slice(from, at), isName: false });
    parts.push({ text: name, isName: true });
    at += name.length;
    from = at;
  }
  if (from < sentence.length) parts.push({ text: sentence.slice(from), isName: false });
  return parts;
}

/** Whether the sentence has the name at this position as a whole word. */
function isAt(sentence: string, name: string, at: number): boolean {
  const end = at + name.length;
  return (
    sentence.startsWith(name, at) &&
    (at === 0 || sentence[at - 1] === " ") &&
    (end === sentence.length || /[ ,.]/.test(sentence[end]!))
  );
}

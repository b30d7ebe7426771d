// A text of the run: rendered, as it is written, or with its differences from another text.

import { useMemo } from "preact/hooks";
import { Code, markdown, MOST_RENDERED } from "./markdown";
import type { Part } from "./word_diff";

export type Look = "rendered" | "raw" | "diff";

export function Rendered({ children: text, raw = false }: { children: string; raw?: boolean }) {
  const content = useMemo(() => (raw ? null : jsonOf(text) ?? markdown(text)), [text, raw]);
  if (text === "") return <p class="loud">Empty.</p>;
  if (content === null) return <div class={raw ? "prose raw" : "prose"} dir="auto">{text}</div>;
  return <div class="rendered">{content}</div>;
}

/** Whole texts that are JSON are shown as code. */
function jsonOf(text: string) {
  const trimmed = text.trim();
  if (trimmed.length > MOST_RENDERED || !/^(\{[^]*\}|\[[^]*\])$/.test(trimmed)) return null;
  try {
    return <Code code={JSON.stringify(JSON.parse(trimmed), null, 2)} language="json" />;
  } catch {
    return null;
  }
}

/** Marks the words; indentation, empty lines and spaces at the ends stay unmarked. */
const marked = (text: string) =>
  text.split(/(^\s+|\s+$|[^\S\n]*\n\s*)/).map((part, place) => (place % 2 || !part ? part : <mark key={place}>{part}</mark>));

/** One side of a word-level comparison. */
export const Differences = ({ parts }: { parts: Part[] }) => (
  <div class="prose" dir="auto">
    {parts.map(({ text, kind }) => (kind === "same" ? text : marked(text)))}
  </div>
);

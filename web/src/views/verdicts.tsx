// The meaning of item verdicts, and advice.

import { Tag } from "../parts/words";

export const VERDICTS = {
  decisive: "Causes a large share of the score differences on its query.",
  redundant: "Has the same answers as an earlier item of its checklist, so one aspect counts twice.",
  dead: "Has nearly the same answer for all candidates, so it does not separate them.",
} as const;

export const ADVICE = {
  decisive: "Check it first: if it is unclear or wrong, so is the ranking on its query.",
  redundant: "Drop one of the two, or rewrite it to ask for something else.",
  dead: "Rewrite it to be more demanding, or drop it: it costs requests and changes no rank.",
} as const;

export type Verdict = keyof typeof VERDICTS;

const MOODS: Record<string, string> = { decisive: "good", redundant: "fair", dead: "poor" };

export const VerdictTag = ({ verdict }: { verdict: string }) =>
  verdict === "" ? null : <Tag mood={MOODS[verdict] ?? ""}>{verdict}</Tag>;

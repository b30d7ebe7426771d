// What items are worth, in words.

import { Tag } from "../parts/words";

export const VERDICTS = {
  decisive: "Makes a large share of the differences between candidates on its query.",
  redundant: "Gets the same answers as an earlier item of its checklist: one thing counts twice.",
  dead: "Gets a sure yes, a sure no or nearly the same answer for all, so it tells nobody apart.",
} as const;

export const ADVICE = {
  decisive: "Read it first: if it is unclear or wrong, so is the query's order of candidates.",
  redundant: "Drop one of the two, or rewrite it to ask for something else.",
  dead: "Rewrite it to ask for more, or drop it: it costs a call and moves no rank.",
} as const;

export type Verdict = keyof typeof VERDICTS;

const MOODS: Record<string, string> = { decisive: "good", redundant: "fair", dead: "poor" };

export const VerdictTag = ({ verdict }: { verdict: string }) =>
  verdict === "" ? null : <Tag mood={MOODS[verdict] ?? ""}>{verdict}</Tag>;

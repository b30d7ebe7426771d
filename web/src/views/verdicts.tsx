// The meaning of item verdicts, and advice.

import { FEWEST_FOR_DECISIVE, FEWEST_FOR_REDUNDANT } from "../contract";
import { plural } from "../format";
import { Tag } from "../parts/words";

export const VERDICTS = {
  decisive: "Causes a large share of the score differences on its query.",
  redundant: "Has the same answers as an earlier item of its checklist, so one aspect counts twice.",
  dead: "Has nearly the same answer for all candidates, so it does not separate them.",
} as const;

const ADVICE = {
  decisive: "Check it first: if it is unclear or wrong, so is the ranking on its query.",
  redundant: "Drop one of the two, or rewrite it to ask for something else.",
  dead: "Rewrite it to be more demanding, or drop it: it costs requests and changes no rank.",
} as const;

export type Verdict = keyof typeof VERDICTS;

const FEWEST: Record<Verdict, number> = {
  decisive: FEWEST_FOR_DECISIVE, redundant: FEWEST_FOR_REDUNDANT, dead: 2,
};

/** Why no item can have a verdict; "" if the candidates are enough. */
export const undecided = (verdict: Verdict, candidates: number) =>
  candidates < FEWEST[verdict]
    ? `Not decided: it takes ${FEWEST[verdict]} responses to a query, and there ${candidates === 1 ? "is 1 candidate" : `are ${candidates} candidates`}.`
    : "";

/** What to do about items with a verdict; `checks` of them are code checks. */
export function adviceOn(verdict: Verdict, items: number, checks: number): string {
  if (verdict !== "dead" || !checks) return ADVICE[verdict];
  if (checks === items) return "Code checks cost no requests: keep them to catch a later failure, or drop them.";
  return `${ADVICE.dead} ${plural(checks, "of them is a code check and costs", "of them are code checks and cost")} no requests.`;
}

const MOODS: Record<string, string> = { decisive: "good", redundant: "fair", dead: "poor" };

export const VerdictTag = ({ verdict }: { verdict: string }) =>
  verdict === "" ? null : <Tag mood={MOODS[verdict] ?? ""}>{verdict}</Tag>;

// The changed responses of two runs, filtered as the address says.

import type { ResponseChange } from "../contract";
import { addressOf } from "../routes";
import type { Look } from "../text/rendered";

export type ChangeKind = "" | "worse" | "better" | "flipped" | "rewritten";

export const KINDS: readonly (readonly [ChangeKind, string])[] = [
  ["", "All changes"],
  ["worse", "Score fell"],
  ["better", "Score rose"],
  ["flipped", "A worse or better answer"],
  ["rewritten", "Another response"],
];

/** The mood of a tag for what got worse or better. */
export const MOODS = { worse: "poor", better: "good", "": "" } as const;

const LOOKS: readonly Look[] = ["diff", "rendered", "raw"];

export interface Changing {
  /** The baseline's name in addresses; "" for none. */
  base: string;
  /** The open response; "" for none. */
  query: string;
  candidate: string;
  /** Only changes of this candidate; "" for all. */
  of: string;
  kind: ChangeKind;
  look: Look;
}

export function changingOf(hash: string): Changing {
  const { fields } = addressOf(hash);
  const field = (name: string) => fields.get(name) ?? "";
  return {
    base: field("base"),
    query: field("q"),
    candidate: field("c"),
    of: field("of"),
    kind: KINDS.find(([kind]) => kind === field("only"))?.[0] ?? "",
    look: LOOKS.find((look) => look === field("look")) ?? LOOKS[0]!,
  };
}

/** Whether a change is of a kind; scores must differ by the tie margin. */
export function isOfKind(change: ResponseChange, kind: ChangeKind, margin: number): boolean {
  const rise = change.now - change.before;
  switch (kind) {
    case "": return true;
    case "worse": return rise <= -margin;
    case "better": return rise >= margin;
    case "flipped": return change.worse_answers + change.better_answers > 0;
    case "rewritten": return change.rewritten;
  }
}

/** The changes that match, the largest fall first; the largest rise first if only rises are shown. */
export function listedChanges(
  changes: readonly ResponseChange[],
  { of, kind }: Pick<Changing, "of" | "kind">,
  margin: number,
): ResponseChange[] {
  const kept = changes.filter(
    (change) => (of === "" || change.candidate === of) && isOfKind(change, kind, margin),
  );
  const rise = ({ before, now }: ResponseChange) => now - before;
  return kept.sort((a, b) => (kind === "better" ? rise(b) - rise(a) : rise(a) - rise(b)));
}

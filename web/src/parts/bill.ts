// What a run took, added up over its stages.

import type { Head } from "../contract";
import { duration, large, money } from "../format";

type Counted = "requests" | "prompt_tokens" | "completion_tokens";

export const total = (head: Head, name: Counted) =>
  head.costs.reduce((sum, stage) => sum + stage[name], 0);

export const time = (head: Head) =>
  duration(head.costs.reduce((sum, stage) => sum + (stage.seconds ?? 0), 0));

export const tokens = (head: Head) =>
  `${large(total(head, "prompt_tokens") + total(head, "completion_tokens"))} tokens`;

export function cost(head: Head): string {
  const priced = head.costs.filter((stage) => stage.cost !== null);
  if (!priced.length) return "no price given";
  return money(priced.reduce((sum, stage) => sum + stage.cost!, 0), priced[0]!.currency);
}

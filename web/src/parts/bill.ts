// Total time, tokens and cost of a run.

import type { Head } from "../contract";
import { duration, large, money } from "../format";

type Counted = "requests" | "prompt_tokens" | "completion_tokens";

export const total = (head: Head, name: Counted) =>
  head.costs.reduce((sum, stage) => sum + stage[name], 0);

/** False if all answers were recorded or reused, so that tokens and cost mean nothing. */
export const hasRequests = (head: Head) =>
  total(head, "requests") + total(head, "prompt_tokens") + total(head, "completion_tokens") > 0;

export const time = (head: Head) =>
  duration(head.costs.reduce((sum, stage) => sum + (stage.seconds ?? 0), 0));

export const tokens = (head: Head) =>
  large(total(head, "prompt_tokens") + total(head, "completion_tokens"));

export function cost(head: Head): string {
  const asked = head.costs.filter((stage) => stage.requests > 0);
  const priced = asked.filter((stage) => stage.cost !== null);
  if (!priced.length) return "no prices configured";
  const sums = new Map<string, number>();
  for (const { cost, currency } of priced) sums.set(currency, (sums.get(currency) ?? 0) + cost!);
  const sum = [...sums].map(([currency, amount]) => money(amount, currency)).join(" + ");
  const unpriced = asked.filter((stage) => stage.cost === null).map(({ stage }) => stage);
  return unpriced.length ? `${sum}, plus ${unpriced.join(" and ")} (no price)` : sum;
}

// One pairwise comparison, identical to `rocketeval compare`.

import type { PairsBlock } from "../contract";

export interface Pair {
  /** null if the two share no query. */
  effect: number | null;
  low: number | null;
  high: number | null;
  pValue: number | null;
  wins: number;
  ties: number;
  losses: number;
  verdict: string;
}

const TURNED: Record<string, string> = { better: "worse", worse: "better" };
const minus = (value: number | null) => (value === null ? null : -value);

/** The comparison of first with second; null if the block does not have it. */
export function pairOf(block: PairsBlock, first: number, second: number): Pair | null {
  const [a, b] = first < second ? [first, second] : [second, first];
  if (a < 0 || a === b || b >= block.first) return null;
  const at = a * block.first - (a * (a + 1)) / 2 + (b - a - 1);
  const pair: Pair = {
    effect: block.effect[at] ?? null,
    low: block.low[at]!,
    high: block.high[at]!,
    pValue: block.p_value[at] ?? null,
    wins: block.wins[at]!,
    ties: block.ties[at]!,
    losses: block.losses[at]!,
    verdict: block.verdict[at]!,
  };
  return first < second ? pair : turned(pair);
}

const turned = (pair: Pair): Pair => ({
  ...pair,
  effect: minus(pair.effect),
  low: minus(pair.high),
  high: minus(pair.low),
  wins: pair.losses,
  losses: pair.wins,
  verdict: TURNED[pair.verdict] ?? pair.verdict,
});

/** The difference with its interval, rounded to two digits of the interval width. */
export function effectWords({ effect, low, high }: Pair): string {
  if (effect === null) return "none";
  if (low === null || high === null) return `${withSign(effect, 2)} (interval unknown)`;
  const width = high - low;
  const places = width > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(width)))) : 2;
  const [value, from, to] = [effect, low, high].map((each) => withSign(each, places));
  return `${value} (${from} to ${to})`;
}

function withSign(value: number, places: number): string {
  const words = Math.abs(value).toFixed(places);
  return `${value < 0 && Number(words) !== 0 ? "\u2212" : "+"}${words}`;
}

export function chance(pValue: number | null): string {
  if (pValue === null) return "";
  return pValue < 0.001 ? "p < 0.001" : `p = ${pValue.toFixed(3)}`;
}

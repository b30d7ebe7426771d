// Signed differences.

import { two } from "../format";

export const gapWords = (gap: number) => {
  const words = two(gap);
  return gap > 0 && words !== "0.00" ? `+${words}` : words;
};

/** A number with at most two decimals and no trailing zeros. */
export const plainNumber = (value: number) => String(Number(value.toFixed(2)));

// Differences with their sign.

import { two } from "../format";

export const gapWords = (gap: number) => {
  const words = two(gap);
  return gap > 0 && words !== "0.00" ? `+${words}` : words;
};

/** A label or another number that is often whole: no more digits than it has. */
export const plainNumber = (value: number) => String(Number(value.toFixed(2)));

// Axis labels: names shortened to fit and kept distinct.

import { shortened } from "../format";

/** Returns one label per name; names that are equal after shortening get a number. */
export function axisNames(names: string[], most: number): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const short = shortened(name, most);
    const before = seen.get(short) ?? 0;
    seen.set(short, before + 1);
    return before ? `${shortened(name, most - 3)} ${before + 1}` : short;
  });
}

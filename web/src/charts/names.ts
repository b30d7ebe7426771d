// Names on an axis: cut to fit, yet different from each other.

import { shortened } from "../format";

/** One label a name; what would look the same after cutting gets a number. */
export function axisNames(names: string[], most: number): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const short = shortened(name, most);
    const before = seen.get(short) ?? 0;
    seen.set(short, before + 1);
    return before ? `${shortened(name, most - 3)} ${before + 1}` : short;
  });
}

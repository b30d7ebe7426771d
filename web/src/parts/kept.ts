// View settings, kept in the address.

import { addressOf, setFields, useHash } from "../routes";
import type { Options } from "./choice";

/** Like useState for strings, but kept in the address as the field `name`; `among` are its values. */
export function useKept<T extends string = string>(
  name: string,
  first: NoInfer<T>,
  among?: Options<T>,
): [T, (value: T) => void] {
  const found = addressOf(useHash()).fields.get(name) as T | null;
  const isKnown = found !== null && (!among || among.some(([value]) => value === found));
  const keep = (next: T) => setFields({ [name]: next === first ? "" : next }, true);
  return [isKnown ? found : first, keep];
}

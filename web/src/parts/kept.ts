// View settings that last until the page is closed.

import { useState } from "preact/hooks";

const choices = new Map<string, unknown>();

/** Like useState, but remembered under `name`. */
export function useKept<T>(name: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() =>
    choices.has(name) ? (choices.get(name) as T) : first,
  );
  const keep = (next: T) => {
    choices.set(name, next);
    setValue(next);
  };
  return [value, keep];
}

// What a reader chose in a view, kept until the page is closed: going back finds it again.

import { useState } from "preact/hooks";

const choices = new Map<string, unknown>();

/** As useState; `name` says where it is kept. */
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

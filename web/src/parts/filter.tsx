// A search box over a list, with how many are left.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

export function Filtered<T>(props: {
  entries: readonly T[];
  /** What is searched, in lower case. */
  words: (entry: T) => string;
  placeholder: string;
  controls?: ComponentChildren;
  children: (kept: readonly T[]) => ComponentChildren;
}) {
  const [needle, setNeedle] = useState("");
  const wanted = needle.trim().toLowerCase();
  const kept = useMemo(
    () => (wanted ? props.entries.filter((entry) => props.words(entry).includes(wanted)) : props.entries),
    [props.entries, wanted],
  );
  return (
    <>
      <div class="filter">
        <label>
          <span>Filter</span>
          <input
            type="search"
            placeholder={props.placeholder}
            value={needle}
            onInput={(event) => setNeedle(event.currentTarget.value)}
          />
        </label>
        {props.controls}
        <span class="hint" role="status">
          {wanted ? `${kept.length} of ${props.entries.length}` : ""}
        </span>
      </div>
      {props.children(kept)}
    </>
  );
}

// Virtualized list with expandable rows.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useRange, type Key } from "./fold_range";

export interface FoldListProps<T> {
  entries: readonly T[];
  /** A key that does not change when the list is sorted. */
  keyOf: (entry: T) => Key;
  rowHeight: number;
  name: string;
  line: (entry: T) => ComponentChildren;
  inside: (entry: T) => ComponentChildren;
  opened?: Key;
}

/** Collapsed rows share one measured height; expanded rows are measured one by one. */
export function FoldList<T>(props: FoldListProps<T>) {
  const { entries, keyOf } = props;
  const [open, setOpen] = useState<ReadonlySet<Key>>(
    () => new Set(props.opened === undefined ? [] : [props.opened]),
  );
  const keys = useMemo(() => entries.map(keyOf), [entries]);
  const { box, range, padding } = useRange(keys, props.rowHeight);
  const toggle = (key: Key, isOpen: boolean) => {
    if (open.has(key) === isOpen) return;
    const next = new Set(open);
    if (isOpen) next.add(key);
    else next.delete(key);
    setOpen(next);
  };
  return (
    <div ref={box} class="fold-list" role="list" aria-label={props.name}>
      <div role="presentation" style={{ height: `${padding[0]}px` }} />
      {entries.slice(range[0], range[1]).map((entry, offset) => {
        const key = keyOf(entry);
        return (
          <div
            key={key}
            class="fold-row"
            role="listitem"
            aria-setsize={entries.length}
            aria-posinset={range[0] + offset + 1}
            data-place={range[0] + offset}
          >
            <details
              open={open.has(key)}
              onToggle={(event) => toggle(key, event.currentTarget.open)}
            >
              <summary>{props.line(entry)}</summary>
              {open.has(key) && <div class="fold-inside">{props.inside(entry)}</div>}
            </details>
          </div>
        );
      })}
      <div role="presentation" style={{ height: `${padding[1]}px` }} />
    </div>
  );
}

// Virtualized list: only rows near the viewport are rendered.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const BEYOND = 12;
const STEP = 8;

/**
 * All rows have the same height. `rowHeight` is an estimate in pixels; the real height is measured.
 * Short lists render completely, so that they can be printed and searched.
 */
export function LongList<T>(props: {
  entries: readonly T[];
  rowHeight: number;
  name: string;
  children: (entry: T, place: number) => ComponentChildren;
}) {
  const { entries } = props;
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(props.rowHeight);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  const whole = entries.length <= 120;

  useLayoutEffect(() => {
    if (whole) return undefined;
    const look = () => {
      const element = box.current;
      if (!element) return;
      const row = element.querySelector<HTMLElement>(".long-row");
      const tall = row && row.offsetHeight > 0 ? row.offsetHeight : height;
      if (Math.abs(tall - height) > 0.5) setHeight(tall);
      // The list may scroll in a box of its own; what is visible is inside both.
      const own = element.getBoundingClientRect();
      const frame = element.parentElement!.getBoundingClientRect();
      const isBoxed = getComputedStyle(element.parentElement!).overflowY === "auto";
      const [top, bottom] = isBoxed ? [Math.max(0, frame.top), Math.min(innerHeight, frame.bottom)] : [0, innerHeight];
      const above = top - own.top;
      // Rounded to steps, so that most scrolling renders nothing new.
      const first = Math.max(0, STEP * Math.floor(above / tall / STEP) - BEYOND);
      const below = STEP * Math.ceil((above + bottom - top) / tall / STEP) + BEYOND;
      const last = Math.min(entries.length, below);
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    look();
    // Scrolling of a box does not bubble.
    window.addEventListener("scroll", look, { passive: true, capture: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look, { capture: true });
      window.removeEventListener("resize", look);
    };
  }, [entries, whole, height]);

  const [first, last] = whole ? [0, entries.length] : [Math.min(range[0], entries.length), range[1]];
  return (
    <div ref={box} class="long-list" role="list" aria-label={props.name}>
      <div style={{ height: `${first * height}px` }} />
      {entries.slice(first, last).map((entry, offset) => (
        <div
          class="long-row"
          role="listitem"
          aria-setsize={entries.length}
          aria-posinset={first + offset + 1}
          key={first + offset}
        >
          {props.children(entry, first + offset)}
        </div>
      ))}
      <div style={{ height: `${Math.max(0, entries.length - last) * height}px` }} />
    </div>
  );
}

// Finds the rows of a virtualized list that are near the viewport.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

const BEYOND = 12;
const SHORT = 120;

export type Key = string | number;

/** Returns the rows to render and the padding above and below; short lists render completely. */
export function useRange(keys: Key[], guess: number) {
  const box = useRef<HTMLDivElement>(null);
  const layout = useRef({ row: guess, extra: new Map<Key, number>() });
  const [range, setRange] = useState<[number, number]>([0, Math.min(keys.length, SHORT)]);
  const [, measuredAgain] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || keys.length <= SHORT) {
      setRange([0, keys.length]);
      return undefined;
    }
    const look = () => {
      if (measure(element, keys, layout.current)) measuredAgain((times) => times + 1);
      const tops = topsOf(keys, layout.current);
      const above = -element.getBoundingClientRect().top;
      const first = Math.max(0, placeAt(tops, above) - BEYOND);
      const last = Math.min(keys.length, placeAt(tops, above + window.innerHeight) + BEYOND);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      window.removeEventListener("scroll", look);
    };
  }, [keys]);
  const first = Math.min(range[0], keys.length);
  const last = Math.min(Math.max(range[1], first), keys.length);
  const tops = keys.length <= SHORT ? null : topsOf(keys, layout.current);
  const padding = tops ? [tops[first]!, tops[keys.length]! - tops[last]!] : [0, 0];
  return { box, range: [first, last] as const, padding };
}

interface Layout {
  row: number;
  extra: Map<Key, number>;
}

/** Measures the rendered rows; returns whether a height changed. */
function measure(element: HTMLElement, keys: Key[], layout: Layout): boolean {
  let changed = false;
  for (const row of element.querySelectorAll<HTMLElement>(":scope > .fold-row")) {
    const key = keys[Number(row.dataset.place)];
    const line = row.querySelector("summary");
    if (key === undefined || !line) continue;
    const tall = row.offsetHeight;
    const isOpen = row.querySelector("details")!.open;
    if (!isOpen && Math.abs(layout.row - tall) > 0.5) {
      layout.row = tall;
      changed = true;
    }
    const extra = isOpen ? tall - layout.row : 0;
    if (Math.abs((layout.extra.get(key) ?? 0) - extra) > 0.5) {
      if (extra) layout.extra.set(key, extra);
      else layout.extra.delete(key);
      changed = true;
    }
  }
  return changed;
}

function topsOf(keys: Key[], { row, extra }: Layout): Float64Array {
  const tops = new Float64Array(keys.length + 1);
  keys.forEach((key, place) => {
    tops[place + 1] = tops[place]! + row + (extra.get(key) ?? 0);
  });
  return tops;
}

/** The row at a distance from the top of the list. */
function placeAt(tops: Float64Array, height: number): number {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tops[middle + 1]! > height) high = middle;
    else low = middle + 1;
  }
  return low;
}

// A long text that can be expanded.

import { useEffect, useRef, useState } from "preact/hooks";
import { Rendered } from "../text/rendered";

export function Clipped({ children }: { children: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [long, setLong] = useState(false);
  const [whole, setWhole] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element || whole) return undefined;
    // The observer fires after layout, which avoids a second layout pass.
    const watcher = new ResizeObserver(() => setLong(element.scrollHeight > element.clientHeight + 4));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [children, whole]);
  return (
    <div class={`clipped ${whole ? "whole" : ""} ${long ? "long" : ""}`}>
      <div ref={box}><Rendered>{children}</Rendered></div>
      {long && (
        <button type="button" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : "Show all"}
        </button>
      )}
    </div>
  );
}

// A long text that shows its start, and all of it when asked.

import { useEffect, useRef, useState } from "preact/hooks";
import { Prose } from "./words";

export function Clipped({ children }: { children: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [long, setLong] = useState(false);
  const [whole, setWhole] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element || whole) return undefined;
    // Told after the browser has laid the page out; asking before would make it do so twice.
    const watcher = new ResizeObserver(() => setLong(element.scrollHeight > element.clientHeight + 4));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [children, whole]);
  return (
    <div class={`clipped ${whole ? "whole" : ""} ${long ? "long" : ""}`}>
      <div ref={box}><Prose>{children}</Prose></div>
      {long && (
        <button type="button" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : "Show all of it"}
        </button>
      )}
    </div>
  );
}

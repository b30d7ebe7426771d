// Renders its children after the first paint.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export function Later({ children }: { children: ComponentChildren }) {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    let timer = 0;
    const frame = requestAnimationFrame(() => {
      timer = window.setTimeout(() => setPainted(true));
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return painted ? <>{children}</> : null;
}

// Restores the scroll position on back navigation, also while content is still loading.

import { useLayoutEffect } from "preact/hooks";

const tops = new Map<string, number>();
const PATIENCE = 3000;
const HANDS = ["wheel", "touchstart", "keydown", "pointerdown"] as const;

export function useKeptScroll(hash: string): void {
  useLayoutEffect(() => {
    history.scrollRestoration = "manual";
    const wanted = tops.get(hash) ?? 0;
    let settling = true;
    const place = () => window.scrollTo(0, wanted);
    const growth = new ResizeObserver(() => settling && place());
    const settle = () => {
      settling = false;
      growth.disconnect();
    };
    const keep = () => {
      if (settling && Math.abs(window.scrollY - wanted) < 2) settle();
      if (!settling) tops.set(hash, window.scrollY);
    };
    place();
    if (Math.abs(window.scrollY - wanted) < 2) settle();
    else growth.observe(document.body);
    const tired = setTimeout(settle, PATIENCE);
    window.addEventListener("scroll", keep, { passive: true });
    for (const hand of HANDS) window.addEventListener(hand, settle, { passive: true });
    return () => {
      settle();
      clearTimeout(tired);
      window.removeEventListener("scroll", keep);
      for (const hand of HANDS) window.removeEventListener(hand, settle);
    };
  }, [hash]);
}

// Polls the server while the page is visible.

import { useEffect, useRef } from "preact/hooks";

const PAUSE = 2000;
const LONGEST = 30_000;

/**
 * Fetches `address` every two seconds while the tab is visible, and at once when it becomes visible.
 * If the server does not answer, it backs off and calls `onLost`.
 */
export function usePulse<T>(
  address: string,
  isOn: boolean,
  onPulse: (pulse: T) => void,
  onLost: (isLost: boolean) => void,
): void {
  const heard = useRef({ onPulse, onLost });
  heard.current = { onPulse, onLost };
  useEffect(() => {
    if (!isOn) return undefined;
    let timer = 0;
    let pause = PAUSE;
    let ended = false;
    const ask = async () => {
      try {
        const pulse = await fetched<T>(address);
        if (ended) return;
        pause = PAUSE;
        heard.current.onLost(false);
        heard.current.onPulse(pulse);
      } catch {
        if (ended) return;
        pause = Math.min(LONGEST, 2 * pause);
        heard.current.onLost(true);
      }
      later();
    };
    const later = () => {
      clearTimeout(timer);
      if (!ended && document.visibilityState === "visible") timer = setTimeout(ask, pause);
    };
    const seen = () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") void ask();
    };
    later();
    document.addEventListener("visibilitychange", seen);
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [address, isOn]);
}

export async function fetched<T>(address: string): Promise<T> {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`The server returned ${answer.status} for ${address}.`);
  return (await answer.json()) as T;
}

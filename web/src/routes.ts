// Routes: one URL hash per view, safe for any name.

import { useEffect, useState } from "preact/hooks";

const encode = (name: string) => encodeURIComponent(name.toWellFormed());

export const to = {
  overview: () => "#/",
  queries: () => "#/queries",
  items: () => "#/items",
  compare: (first?: string, second?: string) =>
    first === undefined || second === undefined
      ? "#/compare"
      : `#/compare/${encode(first)}/${encode(second)}`,
  charts: () => "#/charts",
  trust: () => "#/trust",
  evaluator: () => "#/evaluator",
  query: (id: string) => `#/query/${encode(id)}`,
  candidate: (name: string) => `#/candidate/${encode(name)}`,
  response: (candidate: string, query: string) =>
    `#/response/${encode(candidate)}/${encode(query)}`,
};

/** The parts of a route; null if it is invalid. */
export function partsOf(hash: string): string[] | null {
  if (!hash.startsWith("#/")) return [""];
  try {
    return hash.slice(2).split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** The current hash; re-renders when it changes. */
export function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

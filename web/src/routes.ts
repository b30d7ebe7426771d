// Addresses: a path and fields in the URL hash, safe for any name. All state that a reader can
// choose is in the address, so that a link or the back button restores it.

import { useEffect, useState } from "preact/hooks";

const encode = (name: string) => encodeURIComponent(name.toWellFormed());

export type Fields = Record<string, string | readonly string[] | undefined>;

/** Fields as a query string; empty fields are left out. */
export function fieldsIn(fields: Fields): string {
  const parts = Object.entries(fields).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value ?? [])
      .filter((each) => each !== "")
      .map((each) => `${encode(name)}=${encode(each)}`),
  );
  return parts.length ? `?${parts.join("&")}` : "";
}

export const to = {
  overview: () => "#/",
  read: (fields: Fields = {}) => `#/read${fieldsIn(fields)}`,
  items: () => "#/items",
  compare: (first?: string, second?: string) =>
    first === undefined || second === undefined
      ? "#/compare"
      : `#/compare/${encode(first)}/${encode(second)}`,
  label: () => "#/label",
  changes: (fields: Fields = {}) => `#/changes${fieldsIn(fields)}`,
  charts: () => "#/charts",
  trust: () => "#/trust",
  evaluator: () => "#/evaluator",
  query: (id: string) => to.read({ q: id }),
  candidate: (name: string) => `#/candidate/${encode(name)}`,
  response: (candidate: string, query: string) => to.read({ q: query, c: candidate }),
};

export interface Address {
  /** null if the address is invalid. */
  parts: string[] | null;
  fields: URLSearchParams;
}

/** The parts and fields of a hash. */
export function addressOf(hash: string): Address {
  const [path, query] = splitAt(hash, "?");
  const fields = new URLSearchParams(query);
  if (!path.startsWith("#/")) return { parts: [""], fields };
  try {
    return { parts: path.slice(2).split("/").map(decodeURIComponent), fields };
  } catch {
    return { parts: null, fields };
  }
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** The address that replaces one of an older report; null if the address is current. */
export function movedTo({ parts }: Address): string | null {
  const [kind, ...names] = parts ?? [];
  if (kind === "queries" && names.length === 0) return to.read();
  if (kind === "query" && names.length === 1) return to.query(names[0]!);
  if (kind === "response" && names.length === 2) return to.response(names[0]!, names[1]!);
  return null;
}

/** What identifies a page for scrolling and focus: its path, and the query or response that is read. */
export function pageOf(hash: string): string {
  const { parts, fields } = addressOf(hash);
  const path = splitAt(hash, "?")[0];
  if (parts?.[0] === "read") return `${path}?q=${fields.get("q") ?? ""}`;
  if (parts?.[0] !== "changes") return path;
  return `${path}?${["base", "q", "c"].map((name) => fields.get(name) ?? "").join("&")}`;
}

/** The path alone; a view is rebuilt only when it changes. */
export const pathOf = (hash: string) => splitAt(hash, "?")[0];

/** The hash with some fields changed; a field equal to "" is removed. */
export function withFields(hash: string, changes: Fields): string {
  const { fields } = addressOf(hash);
  const all: Fields = {};
  for (const name of fields.keys()) all[name] = fields.getAll(name);
  return (pathOf(hash) || "#/") + fieldsIn({ ...all, ...changes });
}

/** Goes to an address; `replace` keeps the history as it is, for changes such as typed words. */
export function go(hash: string, replace = false): void {
  if (hash === location.hash) return;
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export const setFields = (changes: Fields, replace = false) =>
  go(withFields(location.hash, changes), replace);

/** The current hash; re-renders when it changes. Older addresses are replaced by current ones. */
export function useHash(): string {
  const [hash, setHash] = useState(current);
  useEffect(() => {
    const changed = () => setHash(current());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

function current(): string {
  const moved = movedTo(addressOf(location.hash));
  if (moved !== null) history.replaceState(null, "", moved);
  return location.hash;
}

// The navigation bar and the color theme button.

import { useState } from "preact/hooks";
import type { Head } from "../contract";
import { to } from "../routes";
import { Name } from "./words";

type Place = [href: string, label: string];

const PLACES: Place[] = [
  [to.overview(), "Overview"],
  [to.queries(), "Queries"],
  [to.compare(), "Compare"],
  [to.items(), "Items"],
  [to.charts(), "Charts"],
  [to.trust(), "Audit"],
];

const PART_OF: Record<string, string> = {
  "": to.overview(), candidate: to.overview(), query: to.queries(), response: to.queries(),
};

const placesOf = (head: Head): Place[] =>
  head.evaluator ? [...PLACES, [to.evaluator(), "Evaluator"]] : PLACES;

export function Top({ head, hash }: { head: Head; hash: string }) {
  const kind = hash.slice(2).split("/")[0] ?? "";
  const here = PART_OF[kind] ?? `#/${kind}`;
  return (
    <header class="top">
      {head.index_at !== null && <a href={head.index_at}>All runs</a>}
      <a class="brand" href={to.overview()}>RocketEval <span>Run “<Name>{head.run}</Name>”</span></a>
      <nav aria-label="Report">
        {placesOf(head).map(([href, label]) => (
          <a key={href} href={href} aria-current={href === here ? "page" : undefined}>{label}</a>
        ))}
      </nav>
      <ThemeButton />
    </header>
  );
}

const NEXT = { "": "light", light: "dark", dark: "" } as const;
const THEME_NAMES = { "": "auto", light: "light", dark: "dark" } as const;
type Theme = keyof typeof NEXT;

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>("");
  const change = () => {
    const next = NEXT[theme];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    setTheme(next);
  };
  return (
    <button type="button" class="theme" onClick={change} title="Light, dark, or system colors">
      Theme: {THEME_NAMES[theme]}
    </button>
  );
}

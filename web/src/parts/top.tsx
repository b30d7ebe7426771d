// The navigation bar, search, keys and the color theme button.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Head } from "../contract";
import { pathOf, to } from "../routes";
import { remember, remembered } from "./remembered";
import { Search } from "./search";
import { KeyList } from "./shortcuts";
import { Name } from "./words";

type Place = [href: string, label: string];

const PLACES: Place[] = [
  [to.overview(), "Overview"],
  [to.read(), "Read"],
  [to.compare(), "Compare"],
  [to.label(), "Label"],
  [to.items(), "Items"],
  [to.charts(), "Charts"],
  [to.trust(), "Audit"],
];

const PART_OF: Record<string, string> = { "": to.overview(), candidate: to.overview() };

const placesOf = (head: Head): Place[] => [
  ...PLACES,
  // A baseline needs a server with several runs.
  ...(head.index_at === null ? [] : [[to.changes(), "Changes"] satisfies Place]),
  ...(head.evaluator ? [[to.evaluator(), "Evaluator"] satisfies Place] : []),
];

export function Top({ head, hash }: { head: Head; hash: string }) {
  const kind = pathOf(hash).slice(2).split("/")[0] ?? "";
  const here = PART_OF[kind] ?? `#/${kind}`;
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    // On phones the tabs scroll: show the current one.
    const tab = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (tab && bar.current) bar.current.scrollLeft = tab.offsetLeft + tab.offsetWidth - bar.current.clientWidth;
  }, [here]);
  return (
    <header class="top">
      {head.index_at !== null && <a href={head.index_at}>All runs</a>}
      <a class="brand" href={to.overview()}>RocketEval <span>Run “<Name>{head.run}</Name>”</span></a>
      <nav ref={bar} aria-label="Report">
        {placesOf(head).map(([href, label]) => (
          <a key={href} href={href} aria-current={href === here ? "page" : undefined}>{label}</a>
        ))}
      </nav>
      <span class="tools"><Search /><ThemeButton /><KeyList /></span>
    </header>
  );
}

const NEXT = { "": "light", light: "dark", dark: "" } as const;
const THEME_NAMES = { "": "auto", light: "light", dark: "dark" } as const;
type Theme = keyof typeof NEXT;

function apply(theme: Theme): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** The theme of an earlier visit, applied before the first paint. */
const first = remembered("theme");
const start: Theme = first === "light" || first === "dark" ? first : "";
apply(start);

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(start);
  const change = () => {
    const next = NEXT[theme];
    apply(next);
    remember("theme", next);
    setTheme(next);
  };
  return (
    <button type="button" class="theme theme-button" onClick={change} title="Light, dark, or system colors">
      <span class="theme-word">Theme: </span>{THEME_NAMES[theme]}
    </button>
  );
}

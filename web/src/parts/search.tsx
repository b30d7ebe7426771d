// Search over all texts: queries, responses and items. In report.html the page reads its own blocks;
// `rocketeval view` searches the run.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { QueryBlock, TextMatch } from "../contract";
import { useReport } from "../context";
import { count, plural } from "../format";
import type { Report } from "../report";
import { go, to } from "../routes";
import { fetched } from "./pulse";
import { Name } from "./words";
import { wordsIn } from "./words_box";

const MOST = 60;
const AROUND = 60;

export function Search() {
  const box = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const show = () => {
    setOpen(true);
    box.current?.showModal();
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (box.current?.open) box.current.close();
      else show();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <button type="button" class="theme" onClick={show} title="Search all texts (Ctrl K)">Search</button>
      <dialog
        ref={box} class="dialog search" aria-label="Search" onClose={() => setOpen(false)}
        onClick={(event) => event.target === box.current && box.current?.close()}
      >
        {isOpen && <SearchBox onDone={() => box.current?.close()} />}
      </dialog>
    </>
  );
}

function SearchBox({ onDone }: { onDone: () => void }) {
  const report = useReport();
  const [words, setWords] = useState("");
  const [found, setFound] = useState<TextMatch[]>([]);
  const [isOver, setOver] = useState(true);
  const [limits, setLimits] = useState("");
  const [chosen, setChosen] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => box.current?.focus(), []);
  useEffect(() => {
    const wanted = words.trim();
    const stop = new AbortController();
    setFound([]);
    setChosen(0);
    setOver(wanted.length < 2);
    if (wanted.length < 2) return undefined;
    const timer = setTimeout(() => {
      void search(report, wanted, stop.signal, setFound).then((limits) => {
        if (stop.signal.aborted) return;
        setLimits(limits);
        setOver(true);
      });
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [words, report]);
  const open = (match: TextMatch | undefined) => {
    if (!match) return;
    onDone();
    go(hrefOf(match));
  };
  const pressed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setChosen(Math.min(found.length - 1, Math.max(0, chosen + step)));
    } else if (event.key === "Enter") open(found[chosen]);
  };
  return (
    <div>
      <input
        ref={box} type="search" aria-label="Search all texts" placeholder="Search queries, responses and items"
        value={words} onInput={(event) => setWords(event.currentTarget.value)} onKeyDown={pressed}
      />
      <p class="hint" role="status">{status(words.trim(), found.length, isOver, limits)}</p>
      <ol class="matches">
        {found.map((match, place) => (
          <li key={place}>
            <a href={hrefOf(match)} onClick={onDone} aria-current={place === chosen ? "true" : undefined}>
              <span dir="auto">{match.before}<mark>{match.match}</mark>{match.after}</span>
              <small><Name>{match.query}</Name>{", "}{match.where}{match.candidate !== "" && <> of <Name>{match.candidate}</Name></>}</small>
            </a>
          </li>
        ))}
      </ol>
    </div>
  );
}

const hrefOf = ({ query, candidate }: TextMatch) => to.read({ q: query, c: candidate });

function status(words: string, found: number, isOver: boolean, limits: string): string {
  if (words.length < 2) return "Type two or more letters.";
  if (!isOver) return `Searching; ${plural(found, "match", "matches")} so far.`;
  if (found >= MOST) return `The first ${MOST} matches.`;
  const result = found ? `${plural(found, "match", "matches")}.` : "No text matches.";
  return `${result} ${limits}`.trim();
}

/** Returns a sentence on what was not searched; "" if everything was. */
export async function search(
  report: Report, words: string, signal: AbortSignal, onFound: (found: TextMatch[]) => void,
): Promise<string> {
  if (report.head.blocks === "served") {
    const found = await fetched<TextMatch[]>(`search.json?words=${encodeURIComponent(words)}`);
    if (!signal.aborted) onFound(found);
    return "";
  }
  const queries = await report.queries();
  // A cut file has only the beginning of some queries, and others without their responses.
  const detailOf = (place: number) => (report.head.blocks === "embedded" ? queries.detail(place) : 3);
  const found: TextMatch[] = [];
  for (let place = 0; place < queries.count && found.length < MOST; place++) {
    if (signal.aborted) return "";
    const texts: SearchedText[] = detailOf(place) < 2
      ? [[queries.table.snippet[place]!, "query", ""]]
      : textsOf(await report.query(place), report);
    const before = found.length;
    found.push(...matchesIn(texts, queries.table.id[place]!, words));
    if (found.length > before) onFound(found.slice(0, MOST));
  }
  const partly = queries.table.detail.filter((_, place) => detailOf(place) < 3).length;
  if (partly === 0) return "";
  const [are, were] = partly === 1 ? ["is", "was"] : ["are", "were"];
  return `${count(partly)} of ${plural(queries.count, "query", "queries")} ${are} only partly in this file and ${were} not fully searched.`;
}

type SearchedText = [text: string, where: string, candidate: string];

const textsOf = (block: QueryBlock, report: Pick<Report, "head">): SearchedText[] => [
  [block.text, "query", ""],
  ...block.items.map((item, place): SearchedText => [item, `item ${place + 1}`, ""]),
  ...(block.texts ?? []).map((text, place): SearchedText => [text ?? "", "response", report.head.candidates[place]!.name]),
];

/** One match per text of the query, around the first of the words. */
function matchesIn(texts: SearchedText[], query: string, words: string): TextMatch[] {
  const matches = wordsIn(words);
  return texts.filter(([text]) => matches(text.toLowerCase())).map(([text, where, candidate]) => {
    const first = words.toLowerCase().split(/\s+/)[0]!;
    const at = Math.max(0, text.toLowerCase().indexOf(first));
    const end = at + first.length;
    return {
      query, candidate, where,
      before: (at > AROUND ? "\u2026" : "") + text.slice(Math.max(0, at - AROUND), at),
      match: text.slice(at, end),
      after: text.slice(end, end + 2 * AROUND),
    };
  });
}

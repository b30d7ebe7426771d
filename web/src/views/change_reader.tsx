// The changed responses as a list, and one of them in both runs side by side.

import { useEffect, useMemo } from "preact/hooks";
import type { DiffPage, AnswerChange, ResponseChange, ResponseDiff } from "../contract";
import { useReport } from "../context";
import { plural, two } from "../format";
import { Choice } from "../parts/choice";
import { Clipped } from "../parts/clipped";
import { CopyButton } from "../parts/copy_button";
import { AnswerBar } from "../parts/heat";
import { LongList } from "../parts/long_list";
import { Opened } from "../parts/opened";
import { fetched } from "../parts/pulse";
import { useShortcuts } from "../parts/shortcuts";
import { Name, Tag } from "../parts/words";
import { Left } from "../parts/words_box";
import { fieldsIn, setFields, to, withFields } from "../routes";
import { Differences, Rendered, type Look } from "../text/rendered";
import { wordDiff, type Part } from "../text/word_diff";
import { KINDS, listedChanges, MOODS, type Changing } from "./change_list";
import { gapWords } from "./gaps";

interface ChangeProps {
  page: DiffPage;
  changing: Changing;
}

/** The filtered list; each line opens the response in both runs. */
export function ChangeLines({ page, changing }: ChangeProps) {
  const shown = useMemo(
    () => listedChanges(page.changes, changing, page.tie_margin),
    [page, changing.of, changing.kind],
  );
  const names = page.candidates.map(({ candidate }) => candidate).sort();
  return (
    <div class="change-lines">
      <div class="filter query-filter">
        <Choice label="Where" value={changing.kind} options={KINDS} onChoice={(only) => setFields({ only }, true)} />
        {names.length > 1 && (
          <Choice
            label="Of" value={changing.of}
            options={[["", "All candidates"], ...names.map((name) => [name, name] as const)]}
            onChoice={(of) => setFields({ of }, true)}
          />
        )}
      </div>
      <p class="hint">
        {plural(page.changes.length, "changed response", "changed responses")}{" "}
        <Left shown={shown.length} of={page.changes.length} />
        {page.left_out > 0 && <> {plural(page.left_out, "response", "responses")} with the smallest differences left out.</>}
      </p>
      <div class="query-list">
        <LongList entries={shown} rowHeight={69} name="Changed responses">
          {(change) => <ChangeLine {...{ change, changing }} />}
        </LongList>
        {shown.length === 0 && <p class="hint">No response matches.</p>}
      </div>
    </div>
  );
}

const isOpen = (change: ResponseChange, { query, candidate }: Changing) =>
  change.query === query && change.candidate === candidate;

function ChangeLine({ change, changing }: { change: ResponseChange; changing: Changing }) {
  const { query, snippet, candidate, before, now } = change;
  const rise = now - before;
  return (
    <a
      class="query-line"
      href={withFields(location.hash, { q: query, c: candidate })}
      aria-current={isOpen(change, changing) ? "true" : undefined}
    >
      <span class="snippet" dir="auto">{snippet || query}</span>
      <span class="query-meta">
        <b class={rise < 0 ? "fell" : rise > 0 ? "rose" : ""}>{gapWords(rise)}</b>
        <span class="query-category"><Name>{candidate}</Name></span>
        <span>{two(before)} → {two(now)}</span>
        {change.worse_answers > 0 && <span>{plural(change.worse_answers, "worse answer", "worse answers")}</span>}
        {change.better_answers > 0 && <span>{plural(change.better_answers, "better answer", "better answers")}</span>}
      </span>
    </a>
  );
}

export function ChangeReader({ page, changing }: ChangeProps) {
  const order = useMemo(
    () => listedChanges(page.changes, changing, page.tie_margin),
    [page, changing.of, changing.kind],
  );
  const at = order.findIndex((change) => isOpen(change, changing));
  const open = page.changes.find((change) => isOpen(change, changing));
  const step = (by: number) => {
    const next = order[at < 0 ? 0 : at + by];
    if (next) setFields({ q: next.query, c: next.candidate });
  };
  useShortcuts({
    j: () => step(1),
    k: () => step(-1),
    r: () => setFields({ look: changing.look === "raw" ? "" : "raw" }, true),
  });
  useEffect(() => {
    document.body.classList.add("wide");
    return () => document.body.classList.remove("wide");
  }, []);
  const all = withFields(location.hash, { q: "", c: "" });
  return (
    <div class="reader chosen">
      <nav class="query-pane" aria-label="Changed responses"><ChangeLines {...{ page, changing }} /></nav>
      <div class="reader-query">
        <p class="change-back"><a href={all}>All changes since <Name>{page.base}</Name></a></p>
        <header class="query-head">
          <div>
            <h1 tabIndex={-1}><Name>{changing.candidate}</Name> on <Name>{changing.query}</Name></h1>
            {open && (
              <ul class="facts">
                <li>score {two(open.before)} → <b>{two(open.now)}</b> ({gapWords(open.now - open.before)})</li>
                <li>{open.rewritten ? "another response" : "the same response"}</li>
                <li><a href={to.response(changing.candidate, changing.query)}>Read in this run</a></li>
              </ul>
            )}
          </div>
          <nav class="steps" aria-label="Neighbors in the list">
            <button type="button" disabled={at <= 0} onClick={() => step(-1)} title="Key k">Previous</button>
            {at >= 0 && <span class="hint">{at + 1} of {order.length}</span>}
            <button type="button" disabled={at < 0 || at + 1 >= order.length} onClick={() => step(1)} title="Key j">Next</button>
          </nav>
        </header>
        <Opened
          name={`${changing.base} ${changing.query} ${changing.candidate}`}
          open={() => fetched<ResponseDiff>(`response.json${fieldsIn({
            base: changing.base, query: changing.query, candidate: changing.candidate,
          })}`)}
        >
          {(diff) => <BothResponses {...{ page, diff }} look={changing.look} />}
        </Opened>
      </div>
    </div>
  );
}

const LOOKS: [Look, string][] = [["diff", "Diff"], ["rendered", "Rendered"], ["raw", "Raw"]];

function BothResponses({ page, diff, look }: { page: DiffPage; diff: ResponseDiff; look: Look }) {
  const { head } = useReport();
  const { before, now } = diff;
  const same = before === now;
  const parts = useMemo(
    () => (look === "diff" && !same && before !== null && now !== null ? wordDiff(before, now) : null),
    [before, now, look],
  );
  return (
    <div class="reader-panes">
      <div class="reader-texts">
        <section class="query-text" aria-label="Query"><Clipped>{diff.text}</Clipped></section>
        <section class="responses" aria-label="Responses">
          <div class="responses-head">
            <h2>{same ? "The same response in both runs" : "Responses"}</h2>
            <div class="looks" role="group" aria-label="Show responses">
              {LOOKS.filter(([value]) => value !== "diff" || !same).map(([value, label]) => (
                <button
                  key={value} type="button"
                  aria-pressed={look === value || (same && look === "diff" && value === "rendered")}
                  onClick={() => setFields({ look: value === "diff" ? "" : value }, true)}
                >
                  {label}
                </button>
              ))}
            </div>
          </div>
          {look === "diff" && !same && (
            <p class="hint">
              {parts
                ? "Marked: words that the other response does not have."
                : "These two responses cannot be compared word by word: one is missing, or they are too long."}
            </p>
          )}
          <div class="columns-of-responses">
            {!same && <Side name={`Baseline: ${page.base}`} text={before} look={look} parts={parts?.[0] ?? null} />}
            <Side name={same ? "Both runs" : `This run: ${head.run}`} text={now} look={look} parts={parts?.[1] ?? null} />
          </div>
        </section>
      </div>
      <ItemChanges items={diff.items} base={page.base} />
    </div>
  );
}

function Side(props: { name: string; text: string | null; look: Look; parts: Part[] | null }) {
  const { name, text, look, parts } = props;
  return (
    <article class="response" aria-label={name}>
      <header>
        <p class="response-facts"><b><Name>{name}</Name></b>{text !== null && <CopyButton text={text} what="response" />}</p>
      </header>
      {text === null && <p class="loud">No response to this query.</p>}
      {text !== null && (parts ? <Differences parts={parts} /> : <Rendered raw={look === "raw"}>{text}</Rendered>)}
    </article>
  );
}

/** Flipped items first, then by how far the answer moved. */
function inOrder(items: AnswerChange[]): (AnswerChange & { number: number })[] {
  const moved = ({ before, now }: AnswerChange) => Math.abs((now ?? 0) - (before ?? 0));
  return items
    .map((item, place) => ({ ...item, number: place + 1 }))
    .sort((a, b) => Number(b.flipped !== "") - Number(a.flipped !== "") || moved(b) - moved(a));
}

function ItemChanges({ items, base }: { items: AnswerChange[]; base: string }) {
  const { head } = useReport();
  return (
    <aside class="reader-checklist" aria-label="Checklist" tabIndex={0}>
      <h2>Checklist</h2>
      <p class="hint">{head.answers_are}. The largest changes come first.</p>
      <table class="answers-table">
        <caption class="spoken">{head.answers_are} in both runs</caption>
        <thead><tr><th scope="col"><Name>{base}</Name></th><th scope="col">This run</th></tr></thead>
        {inOrder(items).map((item) => (
          <tbody key={item.number} class={`item ${item.flipped ? "most" : ""}`}>
            <tr>
              <th scope="rowgroup" colSpan={2}>
                <span class="item-number">{item.number}</span> <span dir="auto">{item.text}</span>{" "}
                {item.flipped && <Tag mood={MOODS[item.flipped]}>{item.flipped}</Tag>}
              </th>
            </tr>
            <tr>{[item.before, item.now].map((p, place) => <td key={place}><Answered p={p} /></td>)}</tr>
          </tbody>
        ))}
      </table>
    </aside>
  );
}

function Answered({ p }: { p: number | null }) {
  const { head } = useReport();
  return (
    <div class="answer">
      <AnswerBar p={p} />
      {p === null
        ? <b class="loud">unanswered</b>
        : <b>{two(p)} {head.yes_no && <small>{p >= 0.5 ? "yes" : "no"}</small>}</b>}
    </div>
  );
}

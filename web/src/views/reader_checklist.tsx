// The checklist of a query, with the answers of the shown responses lined up.

import type { Head, ItemFigure } from "../contract";
import { useReport } from "../context";
import { share, two } from "../format";
import { AnswerBar } from "../parts/heat";
import { answerName, Name, Tag } from "../parts/words";
import { itemGroups } from "./item_groups";
import type { Meaning, Odd, QueryResults } from "./sheet";
import { VerdictTag } from "./verdicts";
import { WhyButton } from "./why_button";
import { WrongButton } from "./wrong_button";

interface ChecklistProps {
  results: QueryResults;
  candidates: number[];
}

export function ReaderChecklist({ results, candidates }: ChecklistProps) {
  const { head } = useReport();
  const { items, groups, figures } = results.block;
  if (!items.length) {
    return (
      <aside class="reader-checklist" aria-label="Checklist">
        <h2>Checklist</h2>
        <p class="loud">This query has no checklist, so nothing was judged.</p>
      </aside>
    );
  }
  const most = mostDiffering(results, candidates);
  return (
    <aside class="reader-checklist" aria-label="Checklist" tabIndex={0}>
      <h2>Checklist</h2>
      <p class="hint">
        {head.answers_are}. {weighed(head, figures)}
        {hasRanges(results, candidates) && <> {RANGES}</>}
      </p>
      <table class="answers-table">
        <caption class="spoken">{head.answers_are} of the shown responses</caption>
        <thead>
          <tr>
            {candidates.map((candidate) => (
              <th key={candidate} scope="col"><Name>{head.candidates[candidate]!.name}</Name></th>
            ))}
          </tr>
        </thead>
        {itemGroups(groups, items.length).map(({ name, items: own }) => (
          <>
            {name !== null && (
              <tbody class="group"><tr><th colSpan={candidates.length} scope="rowgroup"><Name>{name}</Name></th></tr></tbody>
            )}
            {own.map((item) => (
              <Item key={item} {...{ results, candidates, item }} isMost={item === most} />
            ))}
          </>
        ))}
      </table>
    </aside>
  );
}

/** The item whose answers differ most between the shown responses; null if none differs. */
function mostDiffering(results: QueryResults, candidates: number[]): number | null {
  const gaps = results.block.items.map((_, item) => {
    const known = candidates.flatMap((each) => results.answers[each]?.[item] ?? []);
    return known.length < 2 ? 0 : Math.max(...known) - Math.min(...known);
  });
  const most = Math.max(0, ...gaps);
  return most >= 0.1 ? gaps.indexOf(most) : null;
}

function weighed(head: Head, figures: ItemFigure[]): string {
  if (figures.some(({ learned }) => learned)) return `Weights were learned from ${head.learned_from || "reference data"}.`;
  if (head.weights === "none") return "This scorer has no weights per item.";
  if (new Set(figures.map(({ weight }) => weight)).size > 1) return "The checklist gives the weights.";
  return "All items have equal weight.";
}

function Item(props: ChecklistProps & { item: number; isMost: boolean }) {
  const { results, candidates, item, isMost } = props;
  const { items, figures, rubric } = results.block;
  const figure = figures[item]!;
  const levels = rubric?.levels[item] ?? [];
  return (
    <tbody class={`item ${figure.verdict} ${isMost ? "most" : ""}`}>
      <tr>
        <th scope="rowgroup" colSpan={candidates.length}>
          <span class="item-number">{item + 1}</span>{" "}
          <span dir="auto">{items[item]}</span>{" "}
          {isMost && <Tag mood="fair">differs most</Tag>}
          {figure.verdict === "dead" && <Tag>{figure.why || "dead"}</Tag>}
          {levels.length > 0 && <ol class="levels">{levels.map((level) => <li key={level}>{level}</li>)}</ol>}
          <ItemFigures figure={figure} item={item} />
        </th>
      </tr>
      <tr>
        {candidates.map((candidate) => (
          <td key={candidate}>
            <Answer
              p={results.answers[candidate]?.[item] ?? null}
              odd={results.odd(candidate, item)}
              meaning={results.meaning(candidate, item)}
            />
            <WrongButton {...{ results, candidate, item }} />
            <WhyButton {...{ results, candidate, item }} />
          </td>
        ))}
      </tr>
    </tbody>
  );
}

/** Figures over the responses of all candidates. */
function ItemFigures({ figure, item }: { figure: ItemFigure; item: number }) {
  const { head } = useReport();
  const answer = answerName(head);
  const known = (value: number | null) => (value === null ? "\u2013" : two(value));
  return (
    <details class="item-figures">
      <summary>All candidates<span class="spoken"> on item {item + 1}</span>: mean {known(figure.mean)}, SD {known(figure.spread)}</summary>
      <dl>
        <div><dt>Mean {answer}</dt><dd>{known(figure.mean)}</dd></div>
        <div><dt>SD of {answer}</dt><dd>{known(figure.spread)}</dd></div>
        {head.weights !== "none" && <div><dt>Weight</dt><dd>{share(figure.weight)}</dd></div>}
        <div><dt>Correlation with score</dt><dd>{known(figure.correlation)}</dd></div>
        <div><dt>Contribution to score SD</dt><dd>{figure.influence === null ? "\u2013" : share(figure.influence)}</dd></div>
        {figure.verdict !== "" && <div><dt>Verdict</dt><dd><VerdictTag verdict={figure.verdict} /> {figure.why}</dd></div>}
      </dl>
    </details>
  );
}

interface AnswerProps {
  p: number | null;
  odd: Odd | undefined;
  meaning: Meaning | undefined;
}

function Answer({ p, odd, meaning }: AnswerProps) {
  const { head } = useReport();
  const word = p === null ? "" : meaning?.words || (head.yes_no ? (p >= 0.5 ? "yes" : "no") : "");
  const na = inapplicable(meaning);
  return (
    <>
      <div class="answer">
        <AnswerBar p={p} low={odd?.low} high={odd?.high} />
        {p === null ? <b class="loud">unanswered</b> : <b>{two(p)} {word && <small>{word}</small>}</b>}
      </div>
      {na && <Tag>{na}</Tag>}
      {odd !== undefined && <small class={odd.why ? "odd" : "range"} title={odd.why ? undefined : RANGES}>{oddWords(odd)}</small>}
    </>
  );
}

/** How likely an item is not applicable, in words; empty if that rounds to 0. */
export function inapplicable(meaning: Meaning | undefined): string {
  const na = meaning?.na ?? 0;
  return na < 0.005 ? "" : `not applicable: ${two(na)}`;
}

const RANGES = "The judge's server lists only the most likely tokens, so some answers are known only within a range.";

/** Whether a shown answer is fine, but known only as a range. */
const hasRanges = (results: QueryResults, candidates: number[]) =>
  results.block.odd.some(([candidate, , low, , why]) => low !== null && !why && candidates.includes(candidate));

/** Why an answer is missing or not exact; only its range if the server listed too few tokens. */
export function oddWords(odd: { low: number | null; high: number | null; why: string }): string {
  if (odd.low === null || odd.high === null) return odd.why;
  const range = `between ${two(odd.low)} and ${two(odd.high)}`;
  return odd.why ? `${odd.why}: ${range}` : range;
}

// The query and the chosen responses, side by side.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { plural, two } from "../format";
import { Clipped } from "../parts/clipped";
import { CopyButton } from "../parts/copy_button";
import { Later } from "../parts/later";
import { Name, Scale, Tag } from "../parts/words";
import { setFields, to, withFields } from "../routes";
import { Differences, Rendered, type Look } from "../text/rendered";
import { wordDiff, type Part } from "../text/word_diff";
import { NotHere } from "./detail_note";
import { plainNumber } from "./gaps";
import { HeatMap } from "./heat_map";
import type { OpenProps } from "./reader";
import type { QueryResults } from "./sheet";
import { sliceOf } from "../slices";
import { Turns } from "./turns";

/** The query's name, its figures, and links to the queries around it. */
export function QueryFacts({ tables, order, place }: OpenProps) {
  const { head } = useReport();
  const { table } = tables.queries;
  const at = order.indexOf(place);
  const mean = table.mean[place] ?? null;
  const spread = table.spread[place] ?? null;
  const missing = table.missing[place]!;
  const step = (other: number | undefined, key: string, label: string) =>
    other === undefined
      ? <span class="step none">{label}</span>
      : <a class="step" href={withFields(location.hash, { q: table.id[other]! })} title={`Key ${key}`}>{label}</a>;
  return (
    <header class="query-head">
      <div>
        <h1 tabIndex={-1}><Name>{table.id[place]!}</Name></h1>
        <ul class="facts">
          {tables.queries.table.slices.flatMap(({ name }) => tables.queries.values(name, place).map((value) => (
            <li key={`${name} ${value}`}>
              <a href={to.read({ in: sliceOf(name, value) })} title={`All queries with this ${name}`}><Tag><Name>{value}</Name></Tag></a>
            </li>
          )))}
          <li>{mean === null ? "no score" : <>mean score <b>{two(mean)}</b> (<Scale head={head} />)</>}</li>
          {spread !== null && <li><span title="Standard deviation of the candidates' scores">SD <b>{two(spread)}</b></span></li>}
          {missing > 0 && <li class="loud">{plural(missing, "score", "scores")} missing</li>}
        </ul>
      </div>
      <nav class="steps" aria-label="Neighbors in the list">
        {step(order[at - 1], "k", "Previous")}
        {at >= 0 && <span class="hint">{at + 1} of {order.length}</span>}
        {step(at < 0 ? undefined : order[at + 1], "j", "Next")}
      </nav>
    </header>
  );
}

export function QueryText({ results }: { results: QueryResults }) {
  const { block } = results;
  return (
    <section class="query-text" aria-label="Query">
      {block.history.length > 0 && (
        <details class="before">
          <summary>{plural(block.history.length, "earlier turn", "earlier turns")}</summary>
          <Turns turns={block.history} />
        </details>
      )}
      <Clipped>{block.text}</Clipped>
      {block.context !== undefined && <Context passages={block.context} what="Context" />}
      {block.reference !== null && (
        <details class="before">
          <summary>Reference response</summary>
          <Clipped>{block.reference}</Clipped>
        </details>
      )}
    </section>
  );
}

/** Passages that candidates were given, such as the results of a search. */
function Context({ passages, what }: { passages: string[]; what: string }) {
  return (
    <details class="before">
      <summary>{what}: {plural(passages.length, "passage", "passages")}</summary>
      <ol class="passages">{passages.map((passage, place) => <li key={place}><Clipped>{passage}</Clipped></li>)}</ol>
    </details>
  );
}

const LOOKS: [Look, string, string][] = [
  ["rendered", "Rendered", "Markdown, code and formulas"],
  ["raw", "Raw", "The text as the judge saw it (key r)"],
  ["diff", "Diff", "Words that the other response does not have (key d)"],
];

const MOST_COLUMNS = 4;

export function Responses(props: OpenProps & { results: QueryResults }) {
  const { head } = useReport();
  const { results, reading } = props;
  const { candidates, look } = reading;
  const diff = useMemo(() => {
    const texts = candidates.slice(0, 2).map((each) => results.text(each));
    const [a, b] = texts;
    return look === "diff" && typeof a === "string" && typeof b === "string" ? wordDiff(a, b) : null;
  }, [results, look, candidates.join()]);
  const show = (chosen: number[]) =>
    setFields({ c: chosen.map((each) => head.candidates[each]!.name) }, true);
  const rest = head.candidates.map((_, place) => place).filter((place) => !candidates.includes(place));
  return (
    <section class="responses" aria-label="Responses">
      <div class="responses-head">
        <h2>Responses</h2>
        <div class="looks" role="group" aria-label="Show responses">
          {LOOKS.filter(([value]) => value !== "diff" || candidates.length > 1).map(([value, label, title]) => (
            <button
              key={value} type="button" title={title} aria-pressed={look === value}
              onClick={() => setFields({ look: value === "rendered" ? "" : value }, true)}
            >
              {label}
            </button>
          ))}
        </div>
        {rest.length > 0 && candidates.length < MOST_COLUMNS && (
          <button type="button" onClick={() => show([...candidates, rest[0]!])}>Add a response</button>
        )}
        {candidates.length === 2 && (
          <a href={to.compare(head.candidates[candidates[0]!]!.name, head.candidates[candidates[1]!]!.name)}>
            Compare on all queries
          </a>
        )}
      </div>
      {look === "diff" && candidates.length > 1 && (
        <p class="hint">
          {diff
            ? "Marked: words that the other of the first two responses does not have."
            : "These two responses cannot be compared word by word: one is missing, or they are too long."}
        </p>
      )}
      <div class="columns-of-responses">
        {candidates.map((candidate, place) => (
          <Column
            key={candidate} {...{ results, candidate, look }}
            parts={place < 2 ? diff?.[place] ?? null : null}
            onCandidate={(other) => show(candidates.map((each) => (each === candidate ? other : each)))}
            onRemove={candidates.length > 1 ? () => show(candidates.filter((each) => each !== candidate)) : null}
          />
        ))}
      </div>
      <Later><HeatMap results={results} /></Later>
    </section>
  );
}

interface ColumnProps {
  results: QueryResults;
  candidate: number;
  look: Look;
  /** What is only in this response; null if the text is shown whole. */
  parts: Part[] | null;
  onCandidate: (candidate: number) => void;
  onRemove: (() => void) | null;
}

function Column({ results, candidate, look, parts, onCandidate, onRemove }: ColumnProps) {
  const { head } = useReport();
  const { name } = head.candidates[candidate]!;
  const score = results.scores[candidate] ?? null;
  const label = results.label(candidate);
  const text = results.text(candidate);
  const own = results.context(candidate);
  return (
    <article class="response" aria-label={`Response of ${name}`}>
      <header>
        <CandidateSelect {...{ results, candidate, onCandidate }} />
        <p class="response-facts">
          <span>{score === null ? <b class="loud">no score</b> : <>score <b>{two(score)}</b></>}</span>
          {label !== undefined && <span>label <b>{plainNumber(label)}</b></span>}
          <a href={to.candidate(name)} title={`All responses of ${name}`}>all responses</a>
          <span class="response-tools">
            {typeof text === "string" && <CopyButton text={text} what="response" />}
            {onRemove && <button type="button" class="remove" title="Hide this response" onClick={onRemove}>×<span class="spoken"> Hide the response of {name}</span></button>}
          </span>
        </p>
      </header>
      {results.hasOwnHistory(candidate) && (
        <details class="before">
          <summary>This candidate had a different conversation before the query</summary>
          <Turns turns={results.history(candidate)} />
        </details>
      )}
      {own !== undefined && <Context passages={own} what={"This candidate\u2019s own context"} />}
      {text === undefined && <NotHere what="The response's text is" />}
      {text === null && <p class="loud">No response to this query.</p>}
      {typeof text === "string" && (parts
        ? <Differences parts={parts} />
        : <Rendered raw={look !== "rendered"}>{text}</Rendered>)}
      <Disarmed count={results.disarmedIn(candidate)} />
    </article>
  );
}

/** The candidates with their scores on this query. */
function CandidateSelect(props: Pick<ColumnProps, "results" | "candidate" | "onCandidate">) {
  const { head } = useReport();
  const { results, candidate, onCandidate } = props;
  return (
    <label>
      <span class="spoken">Candidate</span>
      <select value={String(candidate)} onChange={(event) => onCandidate(Number(event.currentTarget.value))}>
        {head.candidates.map(({ name }, place) => {
          const score = results.scores[place] ?? null;
          return <option key={place} value={String(place)}>{score === null ? name : `${name} (${two(score)})`}</option>;
        })}
      </select>
    </label>
  );
}

function Disarmed({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <p class="hint">
      {plural(count, "sequence", "sequences")} in this response that imitated delimiters or special
      tokens of the prompt {count === 1 ? "was" : "were"} neutralized before the judge read it.
    </p>
  );
}

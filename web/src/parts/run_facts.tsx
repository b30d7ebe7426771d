// Missing data, and the size, cost and judge of the run.

import type { Head, MissingNote } from "../contract";
import { capital, count, large, share } from "../format";
import { cost, hasRequests, time, total } from "./bill";
import { Name } from "./words";

export function Missing({ head }: { head: Head }) {
  const lost = head.losses.filter((loss) => loss.lost && loss.count > 0);
  const mood = lost.length === 0 ? "none" : lost.every(isLittle) ? "little" : "some";
  const noted = head.losses.filter((loss) => !loss.lost && loss.count > 0);
  return (
    <section class={`losses ${mood}`}>
      <h2>{TITLES[mood]}</h2>
      {lost.length > 0 && <ul>{lost.map((loss) => <Line key={loss.what} loss={loss} />)}</ul>}
      {noted.length > 0 && (
        <>
          <h3>Also note</h3>
          <ul>{noted.map((loss) => <Line key={loss.what} loss={loss} />)}</ul>
        </>
      )}
      {head.nothing_lost.length > 0 && (
        <details>
          <summary>{count(head.nothing_lost.length)} checks found nothing missing</summary>
          <ul>{head.nothing_lost.map((what) => <li key={what}>{capital(what)}</li>)}</ul>
        </details>
      )}
    </section>
  );
}

const TITLES = { none: "No answers or scores missing", little: "Missing data: below 1%", some: "Missing data" };

/** Whether less than 1% is missing. */
const isLittle = ({ count: lost, of }: MissingNote) => of !== null && of > 0 && lost / of < 0.01;

function Line({ loss }: { loss: MissingNote }) {
  return (
    <li>
      <span>{capital(loss.what)}</span> <b>{count(loss.count)}</b>
      {loss.of !== null && loss.of > 0 && <small>{part(loss.count / loss.of)} of {count(loss.of)}</small>}
    </li>
  );
}

const part = (value: number) => (value < 0.001 ? "below 0.1%" : share(value));

export function Facts({ head }: { head: Head }) {
  return (
    <section class="run-facts">
      <h2>About this run</h2>
      <dl>
        {head.sizes.map(([name, value]) => <Size key={name} name={name} value={value} head={head} />)}
        {!head.provisional && <Fact name="time" value={time(head)} />}
        {hasRequests(head) && (
          <>
            <Fact name="prompt tokens" value={large(total(head, "prompt_tokens"))} />
            <Fact name="completion tokens" value={large(total(head, "completion_tokens"))} />
            <Fact name="cost" value={cost(head)} />
          </>
        )}
        {head.cost_notes.map(([name, value]) => <Fact key={name} name={name} value={value} />)}
        <Fact name="score" value={head.score_is} title={`Scorer: ${head.scorer}`} />
        <Fact name="grading method" value={head.method} title="What the judge was asked about each response" />
      </dl>
      <details class="fingerprint">
        <summary>Judge details</summary>
        <dl>{head.judge_details.map(([name, value]) => <Fact key={name} name={name} value={value} />)}</dl>
      </details>
    </section>
  );
}

/** Names and definitions of counts that do not explain themselves. */
const SIZES: Record<string, [name: string, title: string]> = {
  checklists: ["checklists", "One per query"],
  items: ["checklist items", "Questions in all checklists"],
  judgments: ["judged responses", "Identical responses to a query count once"],
  answers: ["judge answers", "One per response and item of its checklist; unanswered items are included"],
  labels: ["labels", "Scores that people or a strong model gave to single responses"],
  votes: ["human votes", "Each vote says which of two responses to a query is better, or that they tie"],
  "reference ratings": ["reference ratings", "Ratings of candidates by another source, such as an arena's Elo"],
};

function Size({ name, value, head }: { name: string; value: number; head: Head }) {
  const known = head.evaluator && (name === "judgments" || name === "answers") ? undefined : SIZES[name];
  const checked = name === "answers" && head.answer_kinds.some(([kind]) => kind === "check");
  return <Fact name={checked ? name : known?.[0] ?? name} value={count(value)} title={known?.[1]} />;
}

function Fact({ name, value, title }: { name: string; value: string; title?: string | undefined }) {
  const shown = capital(name.replaceAll("_", " "));
  return (
    <div>
      <dt>{title === undefined ? shown : <abbr title={title}>{shown}</abbr>}</dt>
      <dd><Name>{value}</Name></dd>
    </div>
  );
}

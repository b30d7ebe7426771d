// The first lines of the report: the result, then what was judged, by which judge, at what cost.

import type { Head } from "../contract";
import { count, day, plural } from "../format";
import { to } from "../routes";
import { cost, time, tokens } from "./bill";
import { Name } from "./words";

const size = (head: Head, name: string) => head.sizes.find(([known]) => known === name)?.[1] ?? 0;

export function Hero({ head }: { head: Head }) {
  const candidates = plural(size(head, "candidates"), "candidate", "candidates");
  const queries = plural(size(head, "queries"), "query", "queries");
  const date = day(head.finished || head.created);
  return (
    <header class="hero">
      <p class="overline">
        Evaluation report <Dot /> run <Name>{head.run}</Name>
        {date && <> <Dot /> {date}</>}
      </p>
      <h1 tabIndex={-1}>{candidates} on {queries} of <Name>{head.benchmark}</Name></h1>
      {head.conclusion && <p class="conclusion">{head.conclusion}</p>}
      <p class="lead">
        Judge <b><Name>{head.judge}</Name></b> answered {count(size(head, "answers"))}{" "}
        {head.yes_no && !head.evaluator ? "yes/no checklist items" : "questions"} on{" "}
        {plural(size(head, "responses"), "response", "responses")}.
        {head.method === "checklist" && head.author && !head.evaluator && (
          <> The checklists come from <Name>{head.author}</Name>.</>
        )}{" "}
        Time: {time(head)}. Tokens: {tokens(head)}. Cost: {cost(head)}.
      </p>
      {head.evaluator && (
        <p class="lead">
          <Name>{head.evaluator}</Name> <a href={to.evaluator()}>How it judges</a>
        </p>
      )}
      {head.islands > 1 && !head.conclusion && (
        <p class="provisional">
          <b>{head.islands} sets of candidates share no query.</b> Each set is rated separately; do not
          compare candidates of different sets.
        </p>
      )}
      {head.provisional && head.live === null && <p class="provisional" role="status"><b>Not final.</b> {head.provisional}</p>}
    </header>
  );
}

const Dot = () => <span aria-hidden="true">&#183;</span>;

// The first lines of the report: the result, then what was judged, by which judge, at what cost.

import type { Head } from "../contract";
import { count, day, plural } from "../format";
import { to } from "../routes";
import { cost, hasRequests, time, tokens } from "./bill";
import { Conclusion } from "./conclusion";
import { Name } from "./words";

const size = (head: Pick<Head, "sizes">, name: string) => head.sizes.find(([known]) => known === name)?.[1] ?? 0;

function judged(head: Head): string {
  const all = size(head, "responses");
  const done = size(head, "judgments") || all;
  const soFar = head.provisional && done < all ? `${count(done)} of ` : "";
  const responses = soFar + plural(all, "response", "responses");
  const items = size(head, "items");
  const inAll = `${plural(items, "item", "items")} in ${plural(size(head, "checklists"), "checklist", "checklists")}`;
  const asked = items && !head.evaluator ? `, each against the checklist of its query (${inAll})` : "";
  return `${responses}${asked}: ${answersOf(head)}`;
}

const KINDS: Record<string, string> = { yes_no: "yes/no", scale: "on a scale", check: "by code checks" };

/** The number of answers, by kind if not all are to yes/no questions. */
export function answersOf(head: Pick<Head, "answer_kinds" | "evaluator" | "sizes" | "yes_no">): string {
  const all = size(head, "answers");
  const kinds = head.answer_kinds;
  const kind = head.yes_no && !head.evaluator && !kinds.length ? "yes/no " : "";
  const words = plural(all, `${kind}answer`, `${kind}answers`);
  const counted = kinds.reduce((sum, [, each]) => sum + each, 0);
  if (!kinds.length || counted !== all) return words;
  return `${words} (${kinds.map(([name, each]) => `${count(each)} ${KINDS[name] ?? name}`).join(", ")})`;
}

const isRecorded = (head: Head) =>
  head.judge_details.some(([name, value]) => name === "engine" && value === "recorded");

export function Hero({ head }: { head: Head }) {
  const candidates = plural(size(head, "candidates"), "candidate", "candidates");
  const queries = plural(size(head, "queries"), "query", "queries");
  const date = day(head.finished || head.created);
  return (
    <header class="hero">
      <p class="overline">
        Evaluation report <Dot /> Run “<Name>{head.run}</Name>”
        {date && <> <Dot /> {date}</>}
      </p>
      <h1 tabIndex={-1}>{candidates} on {queries} of <Name>{head.benchmark}</Name></h1>
      {head.conclusion && <Conclusion head={head} />}
      <p class="lead">
        Judge <b><Name>{head.judge}</Name></b> judged {judged(head)}.
        {isRecorded(head) && <> The answers are replayed from an earlier recording: no model was called in this run.</>}
        {head.method === "checklist" && head.author && !head.evaluator && (
          <> The checklists come from <Name>{head.author}</Name>.</>
        )}{" "}
        {!head.provisional && <>Time: {time(head)}.</>}
        {hasRequests(head) && <> Tokens: {tokens(head)}. Cost: {cost(head)}.</>}
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

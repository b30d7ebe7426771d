// One run in the list of runs.

import type { RunLine } from "../contract";
import { count, duration, figure, large, moment, money, plural } from "../format";
import { axisAround, IntervalBar } from "../parts/interval_bar";
import { ProgressBar } from "../parts/progress_bar";
import { Name, Tag } from "../parts/words";
import { to } from "../routes";
import { measuredIn, slugOf } from "./run_groups";

const TOP = 5;

interface CardProps {
  run: RunLine;
  /** The newest earlier run that it can be compared with. */
  before: RunLine | null;
}

export function RunCard({ run, before }: CardProps) {
  return (
    <article class={`run-card ${run.state}`}>
      <h3>
        {run.state === "damaged" ? <Name>{run.name}</Name> : (
          <a href={run.at}><Name>{run.name}</Name></a>
        )}
        <StateTag run={run} />
      </h3>
      {run.why && <p class={run.state === "damaged" ? "loud" : "hint"}>{run.why}</p>}
      {run.state !== "damaged" && <Known run={run} />}
      {before && (
        <p class="hint">
          <a href={`${run.at}${to.changes({ base: slugOf(before) })}`}>
            What changed since <Name>{before.name}</Name>
          </a>
        </p>
      )}
    </article>
  );
}

function Known({ run }: { run: RunLine }) {
  return (
    <>
      <p class="run-line-facts">
        {[
          moment(run.created),
          <>judge <Name>{run.judge}</Name></>,
          run.method,
          run.scorer && `scorer ${run.scorer}`,
          sizeOf(run),
          priceOf(run),
        ].filter(Boolean).map((fact, place) => <span key={place}>{fact}</span>)}
      </p>
      {run.state !== "finished" && run.total > 0 && (
        <p class="run-progress">
          <ProgressBar done={run.done} total={run.total} name={`${run.name}: judged`} />{" "}
          {count(run.done)} of {count(run.total)} responses judged
        </p>
      )}
      {run.trust !== null && <Trust trust={run.trust} />}
      <Ranking run={run} />
    </>
  );
}

const STATES = {
  going: ["good", "running"],
  paused: ["fair", "unfinished"],
  damaged: ["poor", "cannot be shown"],
} as const;

function StateTag({ run }: { run: RunLine }) {
  if (run.state === "finished") return null;
  const [mood, word] = STATES[run.state];
  return <Tag mood={mood}>{word}</Tag>;
}

const sizeOf = ({ queries, candidates }: RunLine) =>
  `${plural(queries, "query", "queries")} \u00d7 ${plural(candidates, "candidate", "candidates")}`;

function priceOf(run: RunLine): string {
  const parts = [
    run.seconds === null ? "" : duration(run.seconds),
    run.prompt_tokens > 0 ? `${large(run.prompt_tokens)} tokens` : "",
    run.cost === null ? "" : money(run.cost, run.currency),
  ];
  return parts.filter(Boolean).join(", ");
}

const MOODS = { good: "good", fair: "fair", poor: "poor", unknown: "" } as const;

function Trust({ trust }: { trust: NonNullable<RunLine["trust"]> }) {
  return (
    <p class="run-trust">
      <Tag mood={MOODS[trust.mood]}>
        {trust.value ? figure(trust.value, trust.unit) : "unknown"}
      </Tag>{" "}
      {trust.title} <small>{trust.verdict}</small>
    </p>
  );
}

function Ranking({ run }: { run: RunLine }) {
  const unit = measuredIn([run]);
  const axis = axisAround(run.ranking.map((row) => row[unit]));
  const rest = run.ranking.length - TOP;
  if (run.ranking.length === 0) return null;
  return (
    <>
      <ol class="run-ranking">
        {run.ranking.slice(0, TOP).map((row) => (
          <li key={row.name}>
            <Name>{row.name}</Name>
            <IntervalBar of={row[unit]} axis={axis} unit={unit} />
            <span class="number">{figure(row[unit], unit)}</span>
          </li>
        ))}
      </ol>
      {rest > 0 && <p class="hint">and {plural(rest, "candidate", "candidates")} more</p>}
    </>
  );
}

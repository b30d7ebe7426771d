// Labeling: pairs of responses with hidden names in random order; votes and scores by keyboard.

import { useEffect, useMemo, useState } from "preact/hooks";
import { collectorOf, download, type Collector, type LabelRecord, type Winner } from "../collector";
import type { LabelProgress, LabelQueue, QueuedPair } from "../contract";
import { useReport } from "../context";
import { figure, plural } from "../format";
import { Opened } from "../parts/opened";
import { fileName } from "../parts/download";
import { remember, remembered } from "../parts/remembered";
import { useShortcuts } from "../parts/shortcuts";
import { Name } from "../parts/words";
import { to } from "../routes";
import { Rendered } from "../text/rendered";
import { QueryText } from "./reader_responses";
import { openQueryResults, type QueryResults } from "./sheet";

export function LabelView() {
  const report = useReport();
  const collector = useMemo(() => collectorOf(report), [report]);
  useEffect(() => {
    document.body.classList.add("wide");
    return () => document.body.classList.remove("wide");
  }, []);
  if (report.head.blocks === "served" && !report.head.labeler)
    return (
      <>
        <h1 tabIndex={-1}>Label</h1>
        <p>
          This server does not collect labels. Stop it and run <code>rocketeval view --label</code>; the
          config names the file for labels as <code>benchmark.collected</code>.
        </p>
      </>
    );
  return (
    <Opened name="label queue" open={() => collector.queue()}>
      {(queue) => <Desk collector={collector} queue={queue} />}
    </Opened>
  );
}

function Desk({ collector, queue }: { collector: Collector; queue: LabelQueue }) {
  const [at, setAt] = useState(0);
  const [progress, setProgress] = useState(queue.progress);
  const [saved, setSaved] = useState<{ id: string; at: number }[]>([]);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [shown, setShown] = useState(-1);
  const pair = queue.pairs[at];
  // A key pressed before the responses are on screen must not vote on what nobody has read.
  const canVote = pair !== undefined && shown === at && !isBusy;
  const send = async (record: LabelRecord, next: number): Promise<boolean> => {
    if (isBusy) return false;
    setBusy(true);
    try {
      const found = await collector.send(record);
      setProgress(found);
      setProblem("");
      if (record.kind === "undo") setSaved(saved.slice(0, -1));
      else setSaved([...saved, { id: found.saved, at }]);
      if (next !== at) setShown(-1);
      setAt(next);
      return true;
    } catch (error) {
      setProblem(`Not saved: ${String(error)} Try again.`);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const vote = (winner: Winner) => canVote && void send({ kind: "vote", ...pair, winner }, at + 1);
  const undo = () => {
    const last = saved.at(-1);
    if (last) void send({ kind: "undo", id: last.id }, last.at);
  };
  const score = async (side: "a" | "b", value: number) =>
    pair !== undefined && send({ kind: "label", query: pair.query, candidate: pair[side], value }, at);
  return (
    <div class="labeling">
      <div class="label-main">
        <header class="query-head">
          <h1 tabIndex={-1}>Which response is better?</h1>
          <p class="hint">Pair {Math.min(at + 1, queue.pairs.length)} of {queue.pairs.length}</p>
        </header>
        {problem && <p class="loud" role="alert">{problem}</p>}
        {pair
          ? <PairToVote key={at} {...{ pair, score, onShown: () => setShown(at) }} />
          : <p class="notice">{queue.pairs.length ? "The queue is empty. Reload the page for more pairs." : "There is no pair left to vote on."}</p>}
        <LabelKeys {...{ vote, undo, skip: () => pair && setAt(at + 1), canVote, canUndo: saved.length > 0 && !isBusy }} />
      </div>
      <Progress {...{ progress, collector }} />
    </div>
  );
}

interface KeyProps {
  vote: (winner: Winner) => void;
  undo: () => void;
  skip: () => void;
  canVote: boolean;
  canUndo: boolean;
}

function LabelKeys({ vote, undo, skip, canVote, canUndo }: KeyProps) {
  useShortcuts({ a: () => vote("a"), b: () => vote("b"), t: () => vote("tie"), s: skip, u: undo, j: skip });
  const buttons: [string, string, () => void, boolean][] = [
    ["A", "A is better", () => vote("a"), canVote],
    ["T", "Tie", () => vote("tie"), canVote],
    ["B", "B is better", () => vote("b"), canVote],
    ["S", "Skip", skip, true],
    ["U", "Undo", undo, canUndo],
  ];
  return (
    <div class="votes" role="group" aria-label="Vote">
      {buttons.map(([key, label, act, isOn]) => (
        <button key={key} type="button" disabled={!isOn} aria-keyshortcuts={key.toLowerCase()} onClick={act}>
          {label} <kbd>{key}</kbd>
        </button>
      ))}
    </div>
  );
}

interface PairProps {
  pair: QueuedPair;
  score: (side: "a" | "b", value: number) => Promise<boolean>;
  onShown: () => void;
}

function PairToVote({ pair, score, onShown }: PairProps) {
  const report = useReport();
  const open = async () => {
    const place = (await report.queries()).place(pair.query);
    if (place === undefined) throw new Error(`There is no query ${pair.query}.`);
    return openQueryResults(report, place);
  };
  return (
    <Opened name={`label ${pair.query}`} open={open}>
      {(results) => <ShownPair {...{ pair, results, score, onShown }} />}
    </Opened>
  );
}

function ShownPair({ pair, results, score, onShown }: PairProps & { results: QueryResults }) {
  const { places } = useReport();
  const [side, setSide] = useState<"a" | "b">("a");
  const [scores, setScores] = useState<{ a?: number; b?: number }>({});
  const allSteps = useSteps();
  const texts = { a: results.text(places.get(pair.a)!), b: results.text(places.get(pair.b)!) };
  // A vote or score on a missing response could not be used.
  const isWhole = typeof texts.a === "string" && typeof texts.b === "string";
  useEffect(() => {
    if (isWhole) onShown();
  }, [isWhole]);
  const steps = isWhole ? allSteps : [];
  const give = async (to_: "a" | "b", value: number) => {
    if (!(await score(to_, value))) return;
    setScores((given) => ({ ...given, [to_]: value }));
    setSide(to_ === "a" ? "b" : "a");
  };
  // Digits score response A first, then B; 0 is 10.
  useShortcuts(Object.fromEntries(
    "1234567890".split("").map((digit) => [digit, () => {
      const value = digit === "0" ? 10 : Number(digit);
      if (steps.includes(value)) void give(side, value);
    }]),
  ));
  return (
    <>
      <QueryText results={results} />
      <div class="columns-of-responses">
        {(["a", "b"] as const).map((each) => {
          const text = texts[each];
          return (
            <article key={each} class="response" aria-label={`Response ${each.toUpperCase()}`}>
              <header>
                <h2>Response {each.toUpperCase()}</h2>
                {steps.length > 0 && (
                  <div class="score-steps" role="group" aria-label={`Score of response ${each.toUpperCase()}`}>
                    {steps.map((value) => (
                      <button key={value} type="button" aria-pressed={scores[each] === value} onClick={() => void give(each, value)}>{value}</button>
                    ))}
                  </div>
                )}
              </header>
              {typeof text === "string" ? <Rendered>{text}</Rendered> : <p class="loud">{text === null ? "No response to this query." : "This text is not in this file."}</p>}
            </article>
          );
        })}
      </div>
      {!isWhole && <p class="notice">A vote needs both responses. Skip this pair.</p>}
    </>
  );
}

const MOST_STEPS = 11;

/** The whole numbers of the label scale; none if there are too many for buttons. */
function useSteps(): number[] {
  const [low, high] = useReport().head.scale;
  const first = Math.ceil(low);
  const count = Math.floor(high) - first + 1;
  return count <= MOST_STEPS ? Array.from({ length: count }, (_, step) => first + step) : [];
}

function Progress({ progress, collector }: { progress: LabelProgress; collector: Collector }) {
  const { head } = useReport();
  const [name, setName] = useState(remembered("labeler"));
  return (
    <aside class="label-progress" aria-label="Progress">
      <h2>So far</h2>
      <p role="status">
        <b>{plural(progress.votes, "vote", "votes")}</b>
        {progress.labels > 0 && <>, {plural(progress.labels, "score", "scores")}</>}
        {progress.wrong > 0 && <>, {plural(progress.wrong, "wrong answer", "wrong answers")}</>}
        {progress.labeler && <> by <Name>{progress.labeler}</Name></>}
      </p>
      {collector.isServed ? (
        <>
          <p class="label-agreement">
            {progress.agreement === null
              ? <>The judge&#8217;s agreement is shown from 5 decided votes ({progress.decided} so far).</>
              : <>The judge agrees with <b>{figure(progress.agreement, "share")}</b> of {progress.decided} decided votes{progress.decided > progress.votes && ", the benchmark\u2019s included"}.</>}
          </p>
          {progress.needed !== null && progress.needed > 0 && (
            <p class="hint">About {plural(progress.needed, "more vote", "more votes")} would narrow it to &#177;10 points.</p>
          )}
          {progress.estimates.length > 0 && (
            <>
              <h3>Estimated mean label</h3>
              <ul class="label-estimates">
                {progress.estimates.map(({ candidate, value, labels }) => (
                  <li key={candidate}><Name>{candidate}</Name> {figure(value, "score")} <small>{plural(labels, "label", "labels")}</small></li>
                ))}
              </ul>
            </>
          )}
          <p class="hint">Names are hidden and the order is random. Each label is on disk before the next pair appears. Run <code>rocketeval run</code> again to use the labels in the audit.</p>
        </>
      ) : (
        <>
          <label class="labeler">Your name <input value={name} onInput={(event) => { setName(event.currentTarget.value); remember("labeler", event.currentTarget.value); }} /></label>
          <button type="button" disabled={!progress.votes && !progress.labels && !progress.wrong} onClick={() => download(collector, fileName(head.run, "labels"))}>Download labels</button>
          {!collector.isLasting() && (
            <p class="loud" role="alert">This browser stores nothing for this page: your labels are only in this tab. Download them before you close it.</p>
          )}
          <p class="hint">
            {collector.isLasting() && "Labels stay in this browser. "}Download them and append them to the file that the config names as{" "}
            <code>benchmark.collected</code>, or label with <code>rocketeval view --label</code>.
          </p>
        </>
      )}
      <p><a href={to.trust()}>Audit of the judge</a></p>
    </aside>
  );
}

// "Why?": the sentences of a response that move one answer, measured by asking the judge again.

import { useEffect, useRef, useState } from "preact/hooks";
import type { InfluenceCost, InfluenceStep, AnswerInfluence, PieceInfluence } from "../contract";
import { useReport } from "../context";
import { two } from "../format";
import {
  asked, changeWords, costWords, directionOf, divisionWords, ending, excerpt, offered, ranked, strength, unanswered,
  type Question,
} from "../influence";
import { ProgressBar } from "../parts/progress_bar";
import { Name } from "../parts/words";
import type { QueryResults } from "./sheet";

interface WhyProps {
  results: QueryResults;
  candidate: number;
  item: number;
}

export function WhyButton({ results, candidate, item }: WhyProps) {
  const { head } = useReport();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // Only a server has a live state.
  const isOffered = head.live?.state === "finished" && head.live.asks_judge;
  if (!isOffered || typeof results.text(candidate) !== "string") return null;
  const { name } = head.candidates[candidate]!;
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <>
      <button
        ref={button} type="button" class="wrong" title="Ask the judge which sentences move this answer"
        onClick={() => setOpen(true)}
      >
        Why?<span class="spoken"> item {item + 1}, {name}</span>
      </button>
      {isOpen && (
        <WhyDialog question={{ query: results.id, candidate: name, item: item + 1 }} text={results.block.items[item]!} onClose={close} />
      )}
    </>
  );
}

type State =
  | { kind: "opening" }
  | { kind: "refused"; why: string }
  | { kind: "offer"; cost: InfluenceCost; judge: string; problem: string }
  | { kind: "asking"; step: InfluenceStep | null }
  | { kind: "done"; result: AnswerInfluence };

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));

function WhyDialog({ question, text, onClose }: { question: Question; text: string; onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const asking = useRef<AbortController | null>(null);
  const [state, setState] = useState<State>({ kind: "opening" });
  const open = async (problem = "") => {
    try {
      const { known, cost, judge, refused } = await offered(question);
      if (known) setState({ kind: "done", result: known });
      else if (cost) setState({ kind: "offer", cost, judge, problem });
      else setState({ kind: "refused", why: refused });
    } catch (error) {
      setState({ kind: "refused", why: words(error) });
    }
  };
  const ask = async () => {
    const own = new AbortController();
    asking.current = own;
    setState({ kind: "asking", step: null });
    try {
      const result = await asked(question, own.signal, (step) => setState({ kind: "asking", step }));
      setState({ kind: "done", result });
    } catch (error) {
      if (!own.signal.aborted) await open(words(error));
    }
  };
  const cancel = () => {
    asking.current?.abort();
    void open();
  };
  useEffect(() => {
    box.current?.showModal();
    void open();
    return () => asking.current?.abort();
  }, []);
  return (
    <dialog
      ref={box} class="dialog why" aria-labelledby="why-title" onClose={onClose}
      onClick={(event) => event.target === box.current && box.current?.close()}
    >
      <div>
        <h2 id="why-title">Why this answer</h2>
        <p><span class="item-number">{question.item}</span> <span dir="auto">{text}</span> <span class="hint">(<Name>{question.candidate}</Name>)</span></p>
        {state.kind === "opening" && <p class="hint" role="status">Loading&#8230;</p>}
        {state.kind === "refused" && <p class="loud" role="status">{state.why}</p>}
        {state.kind === "offer" && <Offer {...state} onAsk={() => void ask()} />}
        {state.kind === "asking" && <Asking step={state.step} onCancel={cancel} />}
        {state.kind === "done" && <Influence result={state.result} />}
        <p><button type="button" onClick={() => box.current?.close()}>Close</button></p>
      </div>
    </dialog>
  );
}

function Offer(props: { cost: InfluenceCost; judge: string; problem: string; onAsk: () => void }) {
  const { cost, judge, problem } = props;
  return (
    <>
      {problem && <p class="loud" role="alert">{problem}</p>}
      <p>
        {divisionWords(cost)} The judge <Name>{judge}</Name> is asked this item again: once about the whole response,
        and once without each {cost.units > cost.asked ? "block" : "part"}.
      </p>
      <p><b>{costWords(cost).join(" ")}</b> Nothing is added to the run.</p>
      <p><button type="button" class="primary" onClick={props.onAsk}>Ask the judge</button></p>
    </>
  );
}

function Asking({ step, onCancel }: { step: InfluenceStep | null; onCancel: () => void }) {
  const { done, of } = step ?? { done: 0, of: 0 };
  return (
    <>
      <p role="status">{of === 0 ? "Checking that the judge is the same\u2026" : `${done} of ${of} answers`}</p>
      {of > 0 && <ProgressBar done={done} total={of} name="Answers" />}
      <p><button type="button" onClick={onCancel}>Cancel</button></p>
    </>
  );
}

function Influence({ result }: { result: AnswerInfluence }) {
  const text = useRef<HTMLDivElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  const strongest = ranked(result);
  const missing = unanswered(result);
  const show = (place: number) => {
    const part = text.current?.querySelector<HTMLElement>(`[data-place="${place}"]`);
    part?.scrollIntoView({ block: "center" });
    part?.focus({ preventScroll: true });
  };
  useEffect(() => title.current?.focus(), []);
  return (
    <>
      <h3 ref={title} tabIndex={-1}>
        {two(result.whole)} now, {result.stored === null ? "unanswered" : two(result.stored)} in the run
      </h3>
      {!result.repeated && (
        <p class="loud">
          The two differ more than this judge&#8217;s repeatability allows: what follows holds for its answer now, and may
          not hold for the answer in the run.
        </p>
      )}
      <p class="hint">
        Leaving a part out shows its influence on this judge, not the judge&#8217;s reason.{" "}
        {result.units > result.asked && divisionWords(result)}
      </p>
      {missing > 0 && <p class="loud">{missing} without an answer: {result.problem}</p>}
      {strongest.length === 0
        ? <p>No part alone moves the answer more than the judge&#8217;s repeatability allows. Several parts may say the same.</p>
        : (
          <ol class="why-list">
            {strongest.map((piece) => (
              <li key={piece.place}>
                <button type="button" class="why-jump" onClick={() => show(piece.place)} dir="auto">{excerpt(piece.text)}</button>
                <span class="why-change">{changeWords(piece)}</span>{" "}
                {piece.p_yes !== null && <span class="hint">without it {two(piece.p_yes)}</span>}
              </li>
            ))}
          </ol>
        )}
      <h3>Response</h3>
      <div ref={text} class="prose why-text" dir="auto">
        {result.pieces.map((piece, place) => <Piece key={place} {...{ piece, place, result }} />)}
      </div>
    </>
  );
}

function Piece({ piece, place, result }: { piece: PieceInfluence; place: number; result: AnswerInfluence }) {
  if (!piece.clear) return <span>{piece.text}</span>;
  const [body, blanks] = ending(piece.text);
  return (
    <>
      <mark
        data-place={place} tabIndex={-1} class={directionOf(piece)}
        style={{ "--strength": `${strength(piece, result)}%` }}
      >
        {body} <span class="why-change">{changeWords(piece)}</span>
      </mark>
      {blanks}
    </>
  );
}

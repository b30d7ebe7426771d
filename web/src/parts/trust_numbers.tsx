// Three figures on how far to trust the judge, each compared with its baselines.

import type { Head, TrustNumber, Unit } from "../contract";
import { capital, ends, show, whole } from "../format";
import { to } from "../routes";
import { Sentence } from "./words";

const WORDS = { good: "Good", fair: "Fair", poor: "Weak" };

/** The grade of a figure; a figure that is shown is never called unknown. */
export function gradeOf({ mood, value }: Pick<TrustNumber, "mood" | "value">): string {
  if (mood !== "unknown") return WORDS[mood];
  return value === null ? "Unknown" : "No verdict";
}

const QUESTIONS: [TrustNumber["question"], string][] = [
  ["judge", "Is the judge right?"],
  ["order", "Is the order certain?"],
  ["missing", "Is anything missing?"],
];

/** One block per question: agreement with people says nothing about the order's certainty. */
export function TrustNumbers({ head, titled = true }: { head: Head; titled?: boolean }) {
  if (head.trust.length === 0) return null;
  return (
    <section class="trust" aria-label="How far can you trust this result?">
      {QUESTIONS.map(([question, title]) => {
        const numbers = head.trust.filter((number) => number.question === question);
        if (!numbers.length) return null;
        return (
          <div key={question} class={`trust-block ${question}`}>
            <h2>{title} {titled && question === "judge" && <a class="more" href={to.trust()}>Audit</a>}</h2>
            <div class="trust-numbers">{numbers.map((number) => <Tile key={number.title} of={number} />)}</div>
          </div>
        );
      })}
    </section>
  );
}

function Tile({ of }: { of: TrustNumber }) {
  return (
    <article class={`trust-number ${of.mood}`}>
      <h3>{of.title} <span class="mood" title={of.how}>{gradeOf(of)}</span></h3>
      <p class="big">
        {of.value === null ? "\u2013" : show(of.value.value, of.unit)}
        {of.value !== null && <small>{ends(of.value, of.unit)}</small>}
      </p>
      {of.value !== null && <Scale of={of} />}
      <p class="trust-says"><Sentence>{`${capital(of.verdict)}.`}</Sentence></p>
      <details><summary>{of.mood === "unknown" ? "What is this?" : `What is this, and why \u201c${gradeOf(of)}\u201d?`}</summary><p>{of.how}</p></details>
    </article>
  );
}

type Baseline = TrustNumber["beside"][number];

const highestFirst = (a: Baseline, b: Baseline) => b.value - a.value;

const endOf = (value: number, unit: Unit) => (unit === "share" ? `${whole(100 * value)}%` : whole(value));

/** The figure on its scale, with baselines and human-human agreement as marks. */
function Scale({ of }: { of: TrustNumber }) {
  const [low, high] = of.range;
  const at = (value: number) => `${100 * Math.min(1, Math.max(0, (value - low) / (high - low)))}%`;
  const { value, low: from, high: to } = of.value!;
  const start = at(from ?? low);
  const width = `calc(${at(to ?? high)} - ${start})`;
  return (
    <div class="scale">
      <div class="axis" aria-hidden="true">
        <small>{endOf(low, of.unit)}</small>
        <div class="track">
          {of.beside.map(({ name, value: beside, kind }) => (
            <span key={name} class={`mark ${kind}`} style={{ insetInlineStart: at(beside) }} />
          ))}
          <span class="reach" style={{ insetInlineStart: start, inlineSize: width }} />
          <span class="point" style={{ insetInlineStart: at(value) }} />
        </div>
        <small>{endOf(high, of.unit)}</small>
      </div>
      <Baselines of={of} kind="people" />
      <Baselines of={of} kind="bound" />
      <Baselines of={of} kind="floor" />
    </div>
  );
}

function Baselines({ of, kind }: { of: TrustNumber; kind: Baseline["kind"] }) {
  const found = of.beside.filter((each) => each.kind === kind).sort(highestFirst);
  if (!found.length) return null;
  return (
    <ul class={`beside ${kind}`}>
      {kind === "floor" && <li>{found.length === 1 ? "Baseline:" : "Baselines:"}</li>}
      {found.map(({ name, value }) => (
        <li key={name}><i aria-hidden="true" />{name} {show(value, of.unit)}</li>
      ))}
    </ul>
  );
}

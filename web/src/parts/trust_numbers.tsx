// How far to trust the judge, in three numbers, each beside what it must be seen beside.

import type { Head, TrustNumber } from "../contract";
import { capital, ends, show } from "../format";
import { to } from "../routes";

const WORDS = { good: "Good", fair: "With care", poor: "Weak", unknown: "Unknown" };

export function TrustNumbers({ head, titled = true }: { head: Head; titled?: boolean }) {
  if (head.trust.length === 0) return null;
  return (
    <section class="trust" aria-label="How far this judge can be trusted">
      {titled && (
        <h2>How far can this judge be trusted? <a class="more" href={to.trust()}>The whole audit</a></h2>
      )}
      <div class="trust-numbers">
        {head.trust.map((number) => <Tile key={number.title} of={number} />)}
      </div>
    </section>
  );
}

function Tile({ of }: { of: TrustNumber }) {
  return (
    <article class={`trust-number ${of.mood}`}>
      <h3>{of.title} <span class="mood">{WORDS[of.mood]}</span></h3>
      <p class="big">
        {of.value === null ? "\u2013" : show(of.value.value, of.unit)}
        {of.value !== null && <small>{ends(of.value, of.unit)}</small>}
      </p>
      {of.value !== null && <Scale of={of} />}
      <p class="trust-says">{capital(of.verdict)}.</p>
      <details><summary>What is this?</summary><p>{of.how}</p></details>
    </article>
  );
}

type Beside = TrustNumber["beside"][number];

const ceilingFirst = (a: Beside, b: Beside) =>
  Number(b.kind === "ceiling") - Number(a.kind === "ceiling") || b.value - a.value;

/** The number on its scale, between trivial rules and people among themselves. */
function Scale({ of }: { of: TrustNumber }) {
  const [low, high] = of.range;
  const at = (value: number) => `${100 * Math.min(1, Math.max(0, (value - low) / (high - low)))}%`;
  const { value, low: from, high: to } = of.value!;
  const start = at(from ?? low);
  const width = `calc(${at(to ?? high)} - ${start})`;
  return (
    <div class="scale">
      <div class="track" aria-hidden="true">
        {of.beside.map(({ name, value: beside, kind }) => (
          <span key={name} class={`mark ${kind}`} style={{ insetInlineStart: at(beside) }} />
        ))}
        <span class="reach" style={{ insetInlineStart: start, inlineSize: width }} />
        <span class="point" style={{ insetInlineStart: at(value) }} />
      </div>
      {of.beside.length > 0 && (
        <ul class="beside">
          {[...of.beside].sort(ceilingFirst).map(({ name, value: beside, kind }) => (
            <li key={name} class={kind}><i aria-hidden="true" />{name} {show(beside, of.unit)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

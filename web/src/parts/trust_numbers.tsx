// Three figures on how far to trust the judge, each compared with its baselines.

import type { Head, TrustNumber } from "../contract";
import { capital, ends, show } from "../format";
import { to } from "../routes";

const WORDS = { good: "Good", fair: "Fair", poor: "Weak", unknown: "Unknown" };

export function TrustNumbers({ head, titled = true }: { head: Head; titled?: boolean }) {
  if (head.trust.length === 0) return null;
  return (
    <section class="trust" aria-label="How far can you trust this judge?">
      {titled && (
        <h2>How far can you trust this judge? <a class="more" href={to.trust()}>Full audit</a></h2>
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

type Baseline = TrustNumber["beside"][number];

const humansFirst = (a: Baseline, b: Baseline) =>
  Number(b.kind === "ceiling") - Number(a.kind === "ceiling") || b.value - a.value;

/** The figure on its scale, with baselines and human-human agreement as marks. */
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
          {[...of.beside].sort(humansFirst).map(({ name, value: beside, kind }) => (
            <li key={name} class={kind}><i aria-hidden="true" />{name} {show(beside, of.unit)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

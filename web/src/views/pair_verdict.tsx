// The verdict on two candidates.

import type { Candidate, PairsBlock } from "../contract";
import { useReport } from "../context";
import { count } from "../format";
import { IntervalBar } from "../parts/interval_bar";
import { Opened } from "../parts/opened";
import { Name } from "../parts/words";
import { to } from "../routes";
import type { Names } from "./names";
import { chance, effectWords, pairOf, type Pair } from "./pair";

export function PairVerdict({ names }: { names: Names }) {
  const report = useReport();
  return (
    <Opened
      name="pairs"
      open={() => report.pairs()}
      absent={<CompareCommand names={names} />}
    >
      {(block) => <KnownVerdict names={names} block={block} />}
    </Opened>
  );
}

function KnownVerdict({ names, block }: { names: Names; block: PairsBlock }) {
  const { places } = useReport();
  const pair = pairOf(block, places.get(names[0])!, places.get(names[1])!);
  return pair ? <Verdict {...{ names, block, pair }} /> : <CompareCommand names={names} />;
}

/** Explains why the leaderboard may seem to disagree. */
export function Otherwise({ pair, rows }: { pair: Pick<Pair, "verdict">; rows: Candidate[] }) {
  const [first, second] = rows as [Candidate, Candidate];
  const isSignificant = pair.verdict === "better" || pair.verdict === "worse";
  const joined = first.group !== null && first.group === second.group;
  const [better, worse] = pair.verdict === "better" ? [first, second] : [second, first];
  if (isSignificant && !joined && (worse.rank ?? Infinity) < (better.rank ?? 0))
    return (
      <p class="notice">
        The leaderboard places <Name>{worse.name}</Name> above <Name>{better.name}</Name>: it counts wins, while
        this compares mean scores. The two ways to rank disagree.
      </p>
    );
  const apart = (first.rank_high ?? 0) < (second.rank_low ?? 0) ||
    (second.rank_high ?? 0) < (first.rank_low ?? 0);
  if (isSignificant ? !joined : !apart) return null;
  return (
    <p class="notice">
      The leaderboard shows these two as {isSignificant
        ? "tied: it corrects for the comparisons of all pairs, and this test does not."
        : "significantly different: its test of all pairs is another one than this."}{" "}
      Treat the difference as small.
    </p>
  );
}

const quoted = (name: string) =>
  /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;

function CompareCommand({ names }: { names: Names }) {
  return (
    <p class="notice">
      This page has no significance test for these two. Run{" "}
      <code>rocketeval compare {names.map(quoted).join(" ")} CONFIG</code> with the config of this
      run.
    </p>
  );
}

const MOODS: Record<string, string> = { better: "good", worse: "poor" };

function Verdict({ names, pair, block }: { names: Names; pair: Pair; block: PairsBlock }) {
  const { head, places } = useReport();
  if (pair.effect === null) {
    return <p class="notice">These two candidates share no query and cannot be compared.</p>;
  }
  return (
    <section class={`verdict ${MOODS[pair.verdict] ?? ""}`} aria-label="Verdict">
      <Headline names={names} pair={pair} />
      <dl>
        <div>
          <dt>Difference</dt>
          <dd>
            <b>{effectWords(pair)}</b> in mean score, {chance(pair.pValue)}
            <EffectBar pair={pair} />
          </dd>
        </div>
        <div><dt>Outcome</dt><dd><Outcome pair={pair} margin={head.tie_margin} /></dd></div>
      </dl>
      <Otherwise pair={pair} rows={names.map((name) => head.candidates[places.get(name)!]!)} />
      <p class="hint">{block.how}</p>
    </section>
  );
}

/** The verdict as one sentence, about scores: whether the judge is right, the audit says. */
export function Headline({ names, pair }: { names: Names; pair: Pick<Pair, "verdict" | "effect" | "low"> }) {
  const { verdict } = pair;
  const [first, second] = names.map((name) => <a href={to.candidate(name)}><Name>{name}</Name></a>);
  if (verdict === "better" || verdict === "worse")
    return <h2>{first} <b>scores significantly {verdict === "better" ? "higher" : "lower"}</b> than {second}</h2>;
  if (pair.low === null && pair.effect !== 0) return <h2>{first} and {second}: <b>too few queries</b></h2>;
  if (pair.low === null) return <h2>{first} and {second} <b>have the same mean score</b></h2>;
  if (verdict === "can't tell") return <h2>{first} and {second} <b>are tied</b></h2>;
  return <h2>{first} and {second}: <b>{verdict}</b></h2>;
}

/** The interval on an axis with zero in the middle. */
function EffectBar({ pair }: { pair: Pair }) {
  const of = { value: pair.effect!, low: pair.low, high: pair.high };
  const most = 1.15 * Math.max(...[of.value, of.low ?? 0, of.high ?? 0].map(Math.abs), 1e-9);
  return (
    <span class="effect-bar">
      <IntervalBar
        of={of} axis={{ low: -most, high: most }} unit="score" label={effectWords(pair)}
      />
      <small aria-hidden="true">
        <span>second higher</span><span>0</span><span>first higher</span>
      </small>
    </span>
  );
}

function Outcome({ pair, margin }: { pair: Pair; margin: number }) {
  const all = pair.wins + pair.ties + pair.losses;
  const parts = [["won", pair.wins], ["tied", pair.ties], ["lost", pair.losses]] as const;
  return (
    <>
      {parts.map(([word, number]) => `${count(number)} ${word}`).join(", ")} of{" "}
      {count(all)} common queries <small>(tie: scores differ by less than {margin})</small>
      <span class="outcome" aria-hidden="true">
        {parts.map(([word, number]) => (
          <span key={word} class={word} style={{ flexGrow: String(number) }} />
        ))}
      </span>
    </>
  );
}

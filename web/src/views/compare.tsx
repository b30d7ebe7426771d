// Two candidates compared: the verdict, its certainty, and the deciding queries.

import { useEffect, useState } from "preact/hooks";
import { useReport } from "../context";
import { Heading } from "../parts/words";
import { to } from "../routes";
import type { Names } from "./names";
import { NotFound } from "./not_found";
import { PairChoice } from "./pair_choice";
import { PairVerdict } from "./pair_verdict";

export function CompareView(props: { first?: string; second?: string }) {
  const { head, places } = useReport();
  const named = (place: number) => head.candidates[place]?.name ?? "";
  const [names, setNames] = useState<Names>([props.first ?? named(0), props.second ?? named(1)]);
  const isAlone = head.candidates.length < 2;
  const isKnown = names.every((name) => places.has(name));
  useEffect(() => {
    // Replace the history entry, so that the selects keep the focus.
    if (isKnown) history.replaceState(null, "", to.compare(...names));
  }, [names]);
  if (!isKnown && !isAlone)
    return <NotFound what="One of the two names is not a candidate of this run." />;
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Compare" />
      {isAlone
        ? <p>This run has only one candidate.</p>
        : <Compared names={names} onNames={setNames} />}
    </>
  );
}

function Compared({ names, onNames }: { names: Names; onNames: (names: Names) => void }) {
  return (
    <>
      <PairChoice names={names} onNames={onNames} />
      {names[0] === names[1] ? (
        <p class="hint">Choose two different candidates.</p>
      ) : (
        <div key={JSON.stringify(names)}>
          <PairVerdict names={names} />
          <p><a class="call" href={to.read({ c: names, sort: "gap" })}>Read the queries that decide it</a></p>
        </div>
      )}
    </>
  );
}

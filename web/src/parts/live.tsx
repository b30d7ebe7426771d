// Progress of an unfinished run, in pages that `rocketeval view` serves.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Head, LiveProgress as LiveState } from "../contract";
import { count, duration } from "../format";
import { OUTDATED } from "../source";
import { ProgressBar } from "./progress_bar";
import { fetched, usePulse } from "./pulse";

interface LiveProps {
  head: Head;
  /** Called with a new head whenever the run has new results. */
  onHead: (head: Head) => void;
}

export function Live({ head, onHead }: LiveProps) {
  const [live, setLive] = useState(head.live);
  const [isLost, setLost] = useState(false);
  const asking = useRef(false);
  useEffect(() => setLive(head.live), [head]);
  const renew = async () => {
    if (asking.current) return;
    asking.current = true;
    try {
      onHead(await fetched<Head>("head.json"));
    } catch {
      setLost(true);
    } finally {
      asking.current = false;
    }
  };
  // A finished run is not polled, but may have been run again.
  const onOutdated = useRef(renew);
  onOutdated.current = renew;
  useEffect(() => {
    const heard = () => void onOutdated.current();
    window.addEventListener(OUTDATED, heard);
    return () => window.removeEventListener(OUTDATED, heard);
  }, []);
  const onPulse = (pulse: LiveState) => {
    setLive(pulse);
    if (pulse.version && pulse.version !== head.live?.version) void renew();
  };
  // Stop polling only after the final figures have arrived.
  const isOver = live?.state === "finished" && live.version === head.live?.version;
  usePulse<LiveState>("pulse.json", live !== null && !isOver, onPulse, setLost);
  if (live === null) return null;
  if (live.state === "finished" && !head.provisional) return null;
  return (
    <aside class={`live ${live.state}`} aria-label="Progress">
      <p role="status">
        <b>{titleOf(live)}</b> {isLost ? <span class="loud">{LOST}</span> : paceOf(live)}
      </p>
      {live.total > 0 && <ProgressBar done={live.done} total={live.total} name="Judged" />}
      {head.provisional && <p class="hint">{head.provisional}</p>}
    </aside>
  );
}

const LOST = "Server unreachable; retrying.";

const STAGES: Record<string, string> = {
  load: "Loading",
  checklist: "Writing checklists",
  grade: "Judging",
  score: "Scoring",
  rank: "Ranking",
  audit: "Auditing",
  report: "Writing the report",
};

function titleOf({ state, stage, done, total }: LiveState): string {
  if (state === "finished") return "Finished";
  const far = total > 0 ? `${count(done)} of ${count(total)} responses` : "";
  const doing = state === "paused" ? "Paused" : STAGES[stage] ?? stage;
  return far ? `${doing}: ${far}` : doing;
}

function paceOf({ state, rate, seconds_left: left }: LiveState): string {
  if (state !== "going") return "";
  const pace = rate === null ? "" : `${rate.toFixed(rate < 10 ? 1 : 0)}/s`;
  return [pace, left === null ? "" : `about ${duration(left)} left`].filter(Boolean).join(", ");
}

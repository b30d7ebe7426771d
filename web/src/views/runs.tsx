// The list of runs in a folder, served by `rocketeval view`.

import { useState } from "preact/hooks";
import type { RunsHead } from "../contract";
import { plural } from "../format";
import { fetched, usePulse } from "../parts/pulse";
import { ThemeButton } from "../parts/top";
import { Name } from "../parts/words";
import { earlierIn, groupsOf, type RunGroup } from "./run_groups";
import { RunHistory } from "./run_history";
import { RunCard } from "./run_card";

export function Runs({ first }: { first: RunsHead }) {
  const [head, setHead] = useState(first);
  const [isLost, setLost] = useState(false);
  const onPulse = async ({ version }: { version: string }) => {
    if (version === head.version) return;
    try {
      setHead(await fetched<RunsHead>("runs.json"));
    } catch {
      setLost(true);
    }
  };
  usePulse<{ version: string }>("pulse.json", true, (pulse) => void onPulse(pulse), setLost);
  const groups = groupsOf(head.runs);
  return (
    <>
      <header class="top">
        <span class="brand">RocketEval</span>
        <span class="runs-theme"><ThemeButton /></span>
      </header>
      <header class="heading">
        <h1 tabIndex={-1}>Runs</h1>
        <p class="view-lead">
          {plural(head.runs.length, "run", "runs")} in <code>{head.folder}</code>
        </p>
        {isLost && <p class="loud" role="status">Server unreachable; retrying.</p>}
      </header>
      {groups.length > 1 && <Jump groups={groups} />}
      {groups.map((group, place) => (
        <Group key={group.benchmark} group={group} id={`group-${place}`} />
      ))}
      {groups.length === 0 && (
        <p class="notice">
          No runs yet. Start one with <code>rocketeval run</code>; it will appear here.
        </p>
      )}
      <footer class="foot">
        Made with {head.made_with}. This page loads data only from its own server.
      </footer>
    </>
  );
}

const titleOf = ({ benchmark }: RunGroup) => benchmark || "Runs that cannot be shown";

function Jump({ groups }: { groups: RunGroup[] }) {
  const toGroup = (place: number) =>
    document.getElementById(`group-${place}`)?.scrollIntoView();
  return (
    <nav class="jump" aria-label="Benchmarks">
      {groups.map((group, place) => (
        <button key={group.benchmark} type="button" onClick={() => toGroup(place)}>
          <Name>{titleOf(group)}</Name> <small>{group.runs.length}</small>
        </button>
      ))}
    </nav>
  );
}

const FIRST = 6;

function Group({ group, id }: { group: RunGroup; id: string }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? group.runs : group.runs.slice(0, FIRST);
  return (
    <section class="section run-group" id={id}>
      <h2><Name>{titleOf(group)}</Name></h2>
      <div class="run-cards">
        {shown.map((run) => <RunCard key={run.at || run.name} run={run} before={earlierIn(group, run)} />)}
      </div>
      {shown.length < group.runs.length && (
        <button type="button" class="more-runs" onClick={() => setWhole(true)}>
          Show all {group.runs.length} runs
        </button>
      )}
      <RunHistory group={group} />
    </section>
  );
}

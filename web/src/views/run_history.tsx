// Results of candidates across the runs of one benchmark.

import { figure } from "../format";
import { Name } from "../parts/words";
import { RunHistoryChart } from "./run_history_chart";
import {
  finishedIn, measuredIn, sharing, tracksOf, type Measured, type RunGroup, type Track,
} from "./run_groups";
import type { RunLine } from "../contract";

export function RunHistory({ group }: { group: RunGroup }) {
  const finished = finishedIn(group);
  if (finished.length < 2) return null;
  const runs = sharing(finished);
  const measured = measuredIn(runs);
  const tracks = tracksOf(runs, measured);
  if (tracks.length === 0)
    return <p class="hint">The finished runs have no candidate in common.</p>;
  return (
    <div class="run-history">
      <RunHistoryChart {...{ runs, tracks, measured }} benchmark={group.benchmark} />
      <details>
        <summary>Show as table</summary>
        <HistoryTable {...{ runs, tracks, measured }} />
      </details>
    </div>
  );
}

function HistoryTable(props: { runs: RunLine[]; tracks: Track[]; measured: Measured }) {
  return (
    <div class="scroll">
      <table class="history-table">
        <caption class="spoken">{props.measured} of candidates in every run</caption>
        <thead>
          <tr>
            <th scope="col">Candidate</th>
            {props.runs.map((run) => (
              <th key={run.at} scope="col" class="number">
                <a href={run.at}><Name>{run.name}</Name></a>
                <small><Name>{run.judge}</Name></small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.tracks.map(({ name, figures }) => (
            <tr key={name}>
              <th scope="row"><Name>{name}</Name></th>
              {figures.map((each, place) => (
                <td key={place} class="number">
                  {each === null ? "\u2013" : figure(each, props.measured)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

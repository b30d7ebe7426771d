// Runs grouped by benchmark, in the order of the server: newest first.

import type { Interval, RunLine } from "../contract";

export interface RunGroup {
  benchmark: string;
  /** Newest first. */
  runs: RunLine[];
}

/** The group with the newest run comes first, runs without a known benchmark last. */
export function groupsOf(runs: RunLine[]): RunGroup[] {
  const groups = new Map<string, RunLine[]>();
  for (const run of runs) {
    const members = groups.get(run.benchmark);
    if (members) members.push(run);
    else groups.set(run.benchmark, [run]);
  }
  const made = [...groups].map(([benchmark, members]) => ({ benchmark, runs: members }));
  return made.sort((a, b) => Number(a.benchmark === "") - Number(b.benchmark === ""));
}

/** The finished runs of a group, oldest first. */
export const finishedIn = (group: RunGroup) =>
  group.runs.filter((run) => run.state === "finished" && run.ranking.length > 0).reverse();

export type Measured = "rating" | "score";

/** What runs are shown by: ratings come from matches, so a single candidate has only a score. */
export const measuredIn = (runs: RunLine[]): Measured =>
  runs.every(({ ranking }) => ranking.filter(({ rating }) => rating !== null).length > 1) ? "rating" : "score";

/** The runs with a candidate that another of them has, too. */
export function sharing(runs: RunLine[]): RunLine[] {
  const known = new Map<string, number>();
  for (const { ranking } of runs)
    for (const { name } of ranking) known.set(name, (known.get(name) ?? 0) + 1);
  return runs.filter(({ ranking }) => ranking.some(({ name }) => known.get(name)! > 1));
}

export interface Track {
  name: string;
  /** One per run; null if the run does not have the candidate. */
  figures: (Interval | null)[];
}

/** Candidates in at least two runs, best in the newest run first. */
export function tracksOf(runs: RunLine[], measured: Measured): Track[] {
  const tracks = new Map<string, Track>();
  runs.forEach((run, place) => {
    for (const row of run.ranking) {
      const track = tracks.get(row.name) ?? { name: row.name, figures: runs.map(() => null) };
      track.figures[place] = row[measured];
      tracks.set(row.name, track);
    }
  });
  const known = (track: Track) => track.figures.filter((figure) => figure !== null);
  const last = (track: Track) => known(track).at(-1)?.value ?? -Infinity;
  return [...tracks.values()]
    .filter((track) => known(track).length > 1)
    .sort((a, b) => last(b) - last(a));
}

/** The newest earlier run that `run` can be compared with; null if there is none. */
export function earlierIn(group: RunGroup, run: RunLine): RunLine | null {
  if (run.state !== "finished" || run.series === "") return null;
  const earlier = group.runs.slice(group.runs.indexOf(run) + 1);
  return earlier.find((each) => each.state === "finished" && each.series === run.series) ?? null;
}

/** The name of a run in addresses. */
export const slugOf = ({ at }: RunLine) => at.replace(/^run\//, "").replace(/\/$/, "");

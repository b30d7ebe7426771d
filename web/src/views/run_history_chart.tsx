// Line chart of ratings or mean scores across runs.

import * as Plot from "@observablehq/plot";
import type { RunLine } from "../contract";
import { axisNames } from "../charts/names";
import { draw } from "../charts/plot";
import { capital, day, shortened } from "../format";
import { Chart } from "../parts/chart";
import type { Measured, Track } from "./run_groups";

const MOST = 8;
/** Width of a letter on the axis. */
const LETTER = 6.6;

interface HistoryProps {
  benchmark: string;
  runs: RunLine[];
  tracks: Track[];
  measured: Measured;
}

interface Point {
  run: string;
  name: string;
  series: string;
  /** Only points of one line are joined. */
  line: string;
  value: number;
  low: number | null;
  high: number | null;
  words: string;
}

export function RunHistoryChart({ benchmark, runs, tracks, measured }: HistoryProps) {
  const shown = tracks.slice(0, MOST);
  const what = measured === "rating" ? "rating" : "mean score";
  const rest = tracks.length > MOST ? ` Top ${MOST} of ${tracks.length} candidates in several runs.` : "";
  return (
    <Chart
      run={benchmark}
      title={`${capital(what)} by run`}
      lead={`Oldest run first.${rest}${apart(runs)}`}
      how="All finished runs of this benchmark, with their own intervals."
      of={JSON.stringify([runs.map(({ name, created }) => [name, created]), shown])}
      wide
      table={() => ({
        columns: ["run", "created", "judge", "candidate", what, "low", "high"],
        rows: tracks.flatMap(({ name, figures }) => figures.flatMap((figure, place) => {
          const { name: run, created, judge } = runs[place]!;
          if (figure === null) return [];
          return [[run, created, judge, name, figure.value, figure.low, figure.high]];
        })),
      })}
      draw={(width) => drawn(width, runs, shown, what)}
    />
  );
}

/** Says why some points are not joined. */
function apart(runs: RunLine[]): string {
  const kinds = new Set(runs.map(({ series }) => series)).size;
  if (kinds < 2) return "";
  return " Runs with another judge, method, scorer or set of candidates are not joined by a line: their figures are not comparable.";
}

function drawn(width: number, runs: RunLine[], tracks: Track[], what: string) {
  const narrow = width < 560;
  const labels = axisNames(runs.map(({ name }) => name), narrow ? 12 : 22);
  const [left, right] = [48, narrow ? 110 : 200];
  const room = (width - left - right) / runs.length;
  const isTight = Math.max(...labels.map(({ length }) => length)) * LETTER > room;
  const points = pointsOf(runs, labels, tracks, narrow ? 14 : 26);
  const series = [...new Set(points.map((point) => point.series))];
  return draw(width, {
    height: (narrow ? 260 : 320) + (isTight ? 40 : 0),
    marginLeft: left,
    marginRight: right,
    marginBottom: isTight ? 80 : 40,
    x: { type: "point", domain: labels, label: null, padding: 0.2, tickRotate: isTight ? -40 : 0 },
    y: { label: capital(what), grid: true, nice: true },
    color: { domain: series, range: COLORS },
    symbol: { domain: series },
    marks: [
      Plot.ruleX(points.filter(({ low, high }) => low !== null && high !== null), {
        x: "run", y1: "low", y2: "high", stroke: "series", strokeOpacity: 0.35, strokeWidth: 3,
      }),
      Plot.line(points, { x: "run", y: "value", z: "line", stroke: "series", strokeWidth: 1.75 }),
      Plot.dot(points, {
        x: "run", y: "value", stroke: "series", fill: "var(--card)", symbol: "series", r: 4,
        title: "words", strokeWidth: 1.75,
      }),
      Plot.text(spacedEnds(points, series), {
        x: "run", y: "value", text: "series", fill: "series", textAnchor: "start", dx: 10,
      }),
    ],
  });
}

const COLORS = [
  "var(--yes)", "var(--no-ink)", "var(--good)", "var(--fair)", "var(--soft)", "var(--accent)",
  "var(--loud)", "var(--ink)",
];

function pointsOf(runs: RunLine[], labels: string[], tracks: Track[], letters: number): Point[] {
  const series = axisNames(tracks.map(({ name }) => name), letters);
  return tracks.flatMap(({ name, figures }, track) => figures.flatMap((figure, place) => {
    if (figure === null) return [];
    const run = runs[place]!;
    const words = `${shortened(name, 60)}\n${shortened(run.name, 60)}, ${day(run.created)}\n`
      + `judge ${shortened(run.judge, 60)}\n${figure.value.toFixed(2)}`;
    return [{ run: labels[place]!, name, series: series[track]!, line: `${track} ${run.series}`, ...figure, words }];
  }));
}

/** Positions of the names at the end of each line, spaced so that they do not overlap. */
function spacedEnds(points: Point[], series: string[]): Point[] {
  const ends = series.map((name) => points.filter((point) => point.series === name).at(-1)!);
  const values = points.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
  const room = (Math.max(...values) - Math.min(...values)) / 16;
  const spaced = [...ends].sort((a, b) => b.value - a.value).map((end) => ({ ...end }));
  for (let place = 1; place < spaced.length; place++)
    spaced[place]!.value = Math.min(spaced[place]!.value, spaced[place - 1]!.value - room);
  return spaced;
}

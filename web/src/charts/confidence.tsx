// How right the evaluator is when it decides only what it is sure of.

import * as Plot from "@observablehq/plot";
import type { DescribedConfidence } from "../contract";
import { useReport } from "../context";
import { figure, share, two } from "../format";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { draw } from "./plot";

export function ConfidenceChart(props: { rows: DescribedConfidence[]; threshold: number | null }) {
  const { head } = useReport();
  const { rows, threshold } = props;
  return (
    <Chart
      run={head.run}
      title="Right by how much it decides"
      lead="To the left it decides only what it is surest of"
      how="Every case was judged by a fit that had not seen its query. Cases are ordered by confidence; for each threshold, the share of cases at or above it, and how many of those were right, with an interval from resampled queries."
      rows={<FileLink head={head} name="evaluator.json" />}
      of={props}
      table={() => ({
        columns: ["threshold", "coverage", "accuracy", "low", "high", "cases"],
        rows: rows.map(({ threshold, coverage, accuracy, cases }) => [
          threshold, coverage, accuracy?.value ?? null, accuracy?.low ?? null, accuracy?.high ?? null, cases,
        ]),
      })}
      draw={(width) => drawn(width, rows, threshold)}
    />
  );
}

/** Whether a row is the one that a threshold was taken from; both went through JSON. */
export const isAt = (row: DescribedConfidence, threshold: number | null) =>
  threshold !== null && Math.abs(row.threshold - threshold) < 1e-6;

function drawn(width: number, rows: DescribedConfidence[], threshold: number | null) {
  const known = rows.flatMap(({ accuracy, ...row }) => (accuracy === null ? [] : [{ ...row, accuracy }]));
  const bounded = known.filter(({ accuracy }) => accuracy.low !== null && accuracy.high !== null);
  const chosen = known.filter((row) => isAt(row, threshold));
  const percent = (value: number) => `${Math.round(100 * value)}\u00a0%`;
  return draw(width, {
    height: Math.min(360, Math.max(240, width * 0.5)),
    marginLeft: 52,
    marginTop: 28,
    x: { label: "Share of cases that it decides", grid: true, tickFormat: percent, domain: [0, 1] },
    y: { label: "Right among them", grid: true, tickFormat: percent },
    marks: [
      Plot.areaY(bounded, {
        x: "coverage", y1: (row) => row.accuracy.low, y2: (row) => row.accuracy.high, fill: "var(--accent)", fillOpacity: 0.15,
      }),
      Plot.line(known, { x: "coverage", y: (row) => row.accuracy.value, stroke: "var(--accent)" }),
      Plot.dot(known, {
        x: "coverage", y: (row) => row.accuracy.value, r: 4, fill: "var(--accent)",
        title: (row) => `confidence ${two(row.threshold)} or more: ${figure(row.accuracy, "share")} right on ${share(row.coverage)} of the cases`,
      }),
      Plot.dot(chosen, { x: "coverage", y: (row) => row.accuracy.value, r: 8, stroke: "var(--ink)", strokeWidth: 2 }),
      Plot.text(chosen, {
        x: "coverage", y: (row) => row.accuracy.value, text: (row) => `confidence ${two(row.threshold)}`,
        textAnchor: "start", dx: 11, dy: -11, fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 4, paintOrder: "stroke",
      }),
    ],
  });
}

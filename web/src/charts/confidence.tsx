// Accuracy of the evaluator against the share of cases it decides.

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
      title="Accuracy by coverage"
      lead="Left: only the most confident verdicts; right: all verdicts"
      how="Verdicts are out-of-fold. For each confidence threshold: the share of cases at or above it, and the accuracy on them, with an interval from resampled queries."
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

/** Whether a row has this threshold, up to rounding in JSON. */
export const isAt = (row: DescribedConfidence, threshold: number | null) =>
  threshold !== null && Math.abs(row.threshold - threshold) < 1e-6;

function drawn(width: number, rows: DescribedConfidence[], threshold: number | null) {
  const known = rows.flatMap(({ accuracy, ...row }) => (accuracy === null ? [] : [{ ...row, accuracy }]));
  const bounded = known.filter(({ accuracy }) => accuracy.low !== null && accuracy.high !== null);
  const chosen = known.filter((row) => isAt(row, threshold));
  const percent = (value: number) => `${Math.round(100 * value)}%`;
  return draw(width, {
    height: Math.min(360, Math.max(240, width * 0.5)),
    marginLeft: 52,
    marginTop: 28,
    x: { label: "Coverage (share of cases decided)", grid: true, tickFormat: percent, domain: [0, 1] },
    y: { label: "Accuracy on these cases", grid: true, tickFormat: percent },
    marks: [
      Plot.areaY(bounded, {
        x: "coverage", y1: (row) => row.accuracy.low, y2: (row) => row.accuracy.high, fill: "var(--accent)", fillOpacity: 0.15,
      }),
      Plot.line(known, { x: "coverage", y: (row) => row.accuracy.value, stroke: "var(--accent)" }),
      Plot.dot(known, {
        x: "coverage", y: (row) => row.accuracy.value, r: 4, fill: "var(--accent)",
        title: (row) => `confidence ${two(row.threshold)} or more: accuracy ${figure(row.accuracy, "share")} on ${share(row.coverage)} of cases`,
      }),
      Plot.dot(chosen, { x: "coverage", y: (row) => row.accuracy.value, r: 8, stroke: "var(--ink)", strokeWidth: 2 }),
      Plot.text(chosen, {
        x: "coverage", y: (row) => row.accuracy.value, text: (row) => `confidence ${two(row.threshold)}`,
        textAnchor: "start", dx: 11, dy: -11, fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 4, paintOrder: "stroke",
      }),
    ],
  });
}

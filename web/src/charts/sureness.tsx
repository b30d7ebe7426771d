// Histogram of the evaluator's confidence in this run.

import * as Plot from "@observablehq/plot";
import type { DescribedRun, EvaluatorBlock } from "../contract";
import { useReport } from "../context";
import { plural, two } from "../format";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { draw } from "./plot";

const HOW = {
  pairs: "Confidence is the gap between the likeliest outcome (a wins, tie, b wins) and the next.",
  responses: "Confidence is the agreement of an expert's trees on the label.",
};

export function SurenessChart({ run, decides }: { run: DescribedRun; decides: EvaluatorBlock["decides"] }) {
  const { head } = useReport();
  const { edges, counts } = run.confidence;
  return (
    <Chart
      run={head.run}
      title="Confidence in this run"
      lead={run.threshold === null ? "Cases by confidence" : "Orange, left of the line: needs human review"}
      how={`${HOW[decides]} This chart uses no reference data of this run.`}
      rows={<FileLink head={head} name="evaluator.json" />}
      of={run}
      table={() => ({
        columns: ["from", "to", "cases"],
        rows: counts.map((cases, place) => [edges[place]!, edges[place + 1]!, cases]),
      })}
      draw={(width) => drawn(width, run)}
    />
  );
}

function drawn(width: number, { confidence: { edges, counts }, threshold }: DescribedRun) {
  const cut = threshold ?? -Infinity;
  // The bin that contains the threshold is drawn in both colors.
  const bins = counts.flatMap((cases, place) => {
    const [from, to] = [edges[place]!, edges[place + 1]!];
    const parts = from < cut && cut < to ? [[from, cut], [cut, to]] : [[from, to]];
    return parts.map(([start, end]) => ({
      start: start!, end: end!, cases, below: start! < cut,
      title: `${plural(cases, "case", "cases")} with confidence ${two(from)} to ${two(to)}`,
    }));
  });
  const line = threshold === null ? [] : [{ threshold }];
  return draw(width, {
    height: Math.min(360, Math.max(240, width * 0.5)),
    marginLeft: 52,
    marginTop: 28,
    x: { label: "Confidence", domain: [edges[0]!, edges.at(-1)!] },
    y: { label: "Cases", grid: true },
    marks: [
      Plot.rectY(bins, {
        x1: "start", x2: "end", y: "cases", inset: 0.5, title: "title",
        fill: (bin) => (bin.below ? "var(--no)" : "var(--yes)"), fillOpacity: 0.75,
      }),
      Plot.ruleY([0], { stroke: "var(--soft)" }),
      Plot.ruleX(line, { x: "threshold", stroke: "var(--ink)", strokeDasharray: "4 3" }),
      Plot.text(line, { x: "threshold", frameAnchor: "top", text: ({ threshold }) => two(threshold), dy: -12, fill: "var(--ink)" }),
    ],
  });
}

// Calibration curves: scores against reference data.

import * as Plot from "@observablehq/plot";
import type { ReportCurve } from "../contract";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { draw } from "./plot";

export function CalibrationCharts({ most }: { most?: number }) {
  const { head } = useReport();
  return <>{head.calibration.slice(0, most).map((curve) => <Curve key={curve.title} curve={curve} />)}</>;
}

function Curve({ curve }: { curve: ReportCurve }) {
  const { head } = useReport();
  return (
    <Chart
      run={head.run}
      title={curve.title}
      lead={curve.diagonal ? "Dashed line: perfect calibration" : "For a useful judge, the curve climbs from left to right"}
      how={curve.how}
      rows={<><FileLink head={head} name="scores.parquet" /> and <FileLink head={head} name="audit.json" /></>}
      table={() => ({
        columns: [curve.x_label, curve.y_label, "low", "high", "n"],
        rows: curve.bins.map(({ x, y, n }) => [x, y.value, y.low, y.high, n]),
      })}
      draw={(width) => drawn(width, curve)}
    />
  );
}

function drawn(width: number, { bins, diagonal, x_label, y_label }: ReportCurve) {
  const xs = bins.map(({ x }) => x);
  const ends = [{ x: Math.min(...xs) }, { x: Math.max(...xs) }];
  const bounded = bins.filter(({ y }) => y.low !== null && y.high !== null);
  return draw(width, {
    height: Math.min(420, Math.max(260, width * 0.62)),
    x: { label: x_label, grid: true },
    y: { label: y_label, grid: true },
    marks: [
      ...(diagonal ? [Plot.line(ends, { x: "x", y: "x", stroke: "var(--soft)", strokeDasharray: "4 4" })] : []),
      Plot.ruleX(bounded, {
        x: "x", y1: (bin) => bin.y.low, y2: (bin) => bin.y.high, stroke: "var(--accent)", strokeOpacity: 0.45, strokeWidth: 3,
      }),
      Plot.line(bins, { x: "x", y: (bin) => bin.y.value, stroke: "var(--accent)" }),
      Plot.dot(bins, { x: "x", y: (bin) => bin.y.value, r: 4, fill: "var(--accent)", title: (bin) => `n = ${bin.n}` }),
    ],
  });
}

// Box plots of each candidate's scores.

import * as Plot from "@observablehq/plot";
import type { Candidate } from "../contract";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { to } from "../routes";
import { axisNames } from "./names";
import { draw, lettersIn, nameRoom } from "./plot";

const MOST = 40;

type Spread = Candidate & { quantiles: NonNullable<Candidate["quantiles"]> };

export function ScoreChart() {
  const { head } = useReport();
  const known = head.candidates.filter((row): row is Spread => row.quantiles !== null);
  const shown = known.slice(0, MOST);
  if (!shown.length) return null;
  const first = known.length > MOST ? `. Top ${MOST}; the CSV has all` : "";
  return (
    <Chart
      run={head.run}
      title="Score distributions"
      lead={`Box: middle 50% of queries; line: 5% to 95%; tick: median; dot: mean${first}`}
      how="Over all scored queries of a candidate; quantiles by linear interpolation."
      rows={<><FileLink head={head} name="scores.parquet" />, or the candidate's page</>}
      table={() => ({
        columns: ["candidate", "queries", "p05", "p25", "median", "p75", "p95", "mean"],
        rows: known.map((row) => [row.name, row.queries, ...row.quantiles, row.score?.value ?? null]),
      })}
      draw={(width) => drawn(width, shown, head.scale)}
    />
  );
}

function drawn(width: number, found: Spread[], scale: [number, number]) {
  const room = nameRoom(width, found.map(({ name }) => name));
  const labels = axisNames(found.map(({ name }) => name), lettersIn(room));
  const rows = found.map((row, place) => ({ ...row, axis: labels[place]! }));
  return draw(width, {
    marginLeft: room,
    height: 60 + 20 * rows.length,
    x: { label: "Score", grid: true, domain: domain(found, scale) },
    y: { label: null, domain: labels },
    marks: [
      Plot.ruleY(rows, {
        y: "axis", x1: (row) => row.quantiles[0], x2: (row) => row.quantiles[4],
        stroke: "var(--strong-line)",
      }),
      Plot.barX(rows, {
        y: "axis", x1: (row) => row.quantiles[1], x2: (row) => row.quantiles[3], inset: 2,
        fill: "var(--accent)", fillOpacity: 0.3,
        href: (row) => to.candidate(row.name), target: "_self", title: "name",
      }),
      Plot.tickX(rows, {
        y: "axis", x: (row) => row.quantiles[2], stroke: "var(--accent)", strokeWidth: 2, inset: 2,
      }),
      Plot.dot(rows, { y: "axis", x: (row) => row.score.value, r: 2.5, fill: "var(--ink)" }),
    ],
  });
}

function domain(found: Spread[], scale: [number, number]): [number, number] {
  const ends = found.flatMap(({ quantiles }) => [quantiles[0], quantiles[4]]);
  return [Math.min(scale[0], ...ends), Math.max(scale[1], ...ends)];
}

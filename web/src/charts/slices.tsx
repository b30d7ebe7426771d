// Heat maps of mean scores by candidate and slice, one per field.

import * as Plot from "@observablehq/plot";
import type { SliceMeans } from "../contract";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { to } from "../routes";
import { slicedFields } from "../slices";
import { axisNames } from "./names";
import { draw, lettersIn, nameRoom } from "./plot";

const MOST = 40;

export const SliceCharts = () => (
  <>{slicedFields(useReport().head).map((each) => <SliceChart key={each.field} {...each} />)}</>
);

function SliceChart({ field, slices, note }: ReturnType<typeof slicedFields>[number]) {
  const { head } = useReport();
  const names = head.candidates.slice(0, Math.min(MOST, slices[0]!.means.length)).map(({ name }) => name);
  return (
    <Chart
      wide
      run={head.run}
      title={`Mean score by ${field}`}
      lead={`${names.length < head.candidates.length ? `Top ${MOST} candidates; ` : ""}darker is better`}
      how={`Mean over all scored queries of a slice; the CSV has the intervals. ${note}`}
      rows={<FileLink head={head} name="scores.parquet" />}
      table={() => ({
        columns: ["candidate", field, "queries", "mean", "low", "high"],
        rows: slices.flatMap(({ name, queries, means }) => means.map((mean, candidate) => [
          head.candidates[candidate]!.name, name, queries, mean?.value ?? null, mean?.low ?? null, mean?.high ?? null,
        ])),
      })}
      draw={(width) => drawn(width, names, slices)}
    />
  );
}

function drawn(width: number, names: string[], slices: SliceMeans[]) {
  const room = nameRoom(width, names);
  const labels = axisNames(names, lettersIn(room));
  const letters = Math.floor((width - room) / slices.length / 6.2);
  // Names that do not fit side by side are turned.
  const isTurned = letters < 12;
  const columns = axisNames(slices.map(({ name }) => name), isTurned ? 14 : letters);
  const cells = slices.flatMap((slice, place) =>
    names.flatMap((name, candidate) => {
      const mean = slice.means[candidate]?.value ?? null;
      return mean === null ? [] : [{
        mean, row: labels[candidate]!, column: columns[place]!, href: to.candidate(name),
        title: `${name}, ${slice.name}: ${mean.toFixed(2)} over ${slice.queries} queries`,
      }];
    }),
  );
  return draw(width, {
    marginLeft: room,
    marginTop: isTurned ? 74 : 26,
    marginRight: isTurned ? 44 : 20,
    marginBottom: 10,
    height: (isTurned ? 88 : 40) + 22 * names.length,
    padding: 0.04,
    x: { label: null, domain: columns, axis: "top", tickSize: 0, ...(isTurned ? { tickRotate: -40 } : {}) },
    y: { label: null, domain: labels, tickSize: 0 },
    color: { type: "linear", range: ["#eef3f8", "#7fb2dc"], interpolate: "rgb" },
    marks: [
      Plot.cell(cells, {
        x: "column", y: "row", fill: "mean", href: "href", target: "_self", title: "title",
      }),
      Plot.text(cells, {
        x: "column", y: "row", text: (cell) => cell.mean.toFixed(1), fill: "#10151a",
        fontSize: 10.5, pointerEvents: "none",
      }),
    ],
  });
}

// Heat map of mean scores by candidate and category.

import * as Plot from "@observablehq/plot";
import type { CategoryMeans } from "../contract";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { to } from "../routes";
import { axisNames } from "./names";
import { draw, lettersIn, nameRoom } from "./plot";

const MOST = 40;

export function CategoryChart() {
  const { head } = useReport();
  const { categories } = head;
  const names = head.candidates.slice(0, MOST).map(({ name }) => name);
  if (categories.length < 2) return null;
  return (
    <Chart
      wide
      run={head.run}
      title="Mean score by category"
      lead={`${names.length < head.candidates.length ? `Top ${MOST} candidates; ` : ""}darker is better`}
      how="Mean over all scored queries of a category. Means of small categories vary by chance; the ranking's intervals do not cover single cells."
      rows={<FileLink head={head} name="scores.parquet" />}
      table={() => ({
        columns: ["candidate", ...categories.map(({ name }) => name)],
        rows: head.candidates.map(({ name }, candidate) => [
          name, ...categories.map(({ means }) => means[candidate] ?? null),
        ]),
      })}
      draw={(width) => drawn(width, names, categories)}
    />
  );
}

function drawn(width: number, names: string[], categories: CategoryMeans[]) {
  const room = nameRoom(width, names);
  const labels = axisNames(names, lettersIn(room));
  const letters = Math.floor((width - room) / categories.length / 6.2);
  // Names that do not fit side by side are turned.
  const isTurned = letters < 12;
  const columns = axisNames(categories.map(({ name }) => name), isTurned ? 14 : letters);
  const cells = categories.flatMap((category, place) =>
    names.flatMap((name, candidate) => {
      const mean = category.means[candidate] ?? null;
      return mean === null ? [] : [{
        mean, row: labels[candidate]!, column: columns[place]!, href: to.candidate(name),
        title: `${name}, ${category.name}: ${mean.toFixed(2)} over ${category.queries} queries`,
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

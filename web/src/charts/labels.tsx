// Scatter plot of scores against labels, one dot per response.

import * as Plot from "@observablehq/plot";
import type { LabelsBlock } from "../contract";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { Opened } from "../parts/opened";
import type { Queries } from "../report";
import { count } from "../format";
import { to } from "../routes";
import { draw } from "./plot";

export function LabelChart() {
  const report = useReport();
  if (!report.head.sizes.some(([name]) => name === "labels")) return null;
  return (
    <Opened
      name="labels"
      open={() => Promise.all([report.labels(), report.queries()])}
      absent={null}
    >
      {([labels, queries]) => (labels.query.length ? <Drawn labels={labels} queries={queries} /> : null)}
    </Opened>
  );
}

function Drawn({ labels, queries }: { labels: LabelsBlock; queries: Queries }) {
  const { head } = useReport();
  const name = (place: number) => head.candidates[labels.candidate[place]!]!.name;
  const id = (place: number) => queries.table.id[labels.query[place]!]!;
  const points = labels.score.map((score, place) => ({
    score, label: labels.label[place]!, shifted: labels.label[place]! + jitter(place),
    href: to.response(name(place), id(place)),
    title: `${name(place)} on ${id(place)}: score ${score.toFixed(2)}, label ${labels.label[place]}`,
  }));
  return (
    <Chart
      run={head.run}
      title="Scores and labels"
      lead={`${count(points.length)} labeled responses; line: mean label of responses with similar scores`}
      how={`The line joins the mean labels of twelve groups of equal size, by score. One dot per response, shifted slightly so that equal labels stay visible. Click a dot to open its response.${labels.left_out ? ` ${count(labels.left_out)} more responses are not drawn.` : ""}`}
      rows={<><FileLink head={head} name="scores.parquet" /> and <FileLink head={head} name="inputs/labels.jsonl" /></>}
      table={() => ({
        columns: ["query", "candidate", "score", "label"],
        rows: points.map((point, place) => [id(place), name(place), point.score, point.label]),
      })}
      draw={(width) =>
        draw(width, {
          height: Math.min(420, Math.max(260, width * 0.62)),
          x: { label: "Judge's score", grid: true },
          y: { label: "Label", grid: true },
          marks: [
            Plot.dot(points, {
              x: "score", y: "shifted", r: points.length > 1500 ? 1.5 : 2.5, fill: "var(--accent)",
              fillOpacity: 0.35, href: "href", target: "_self", title: "title",
            }),
            Plot.lineY(means(points), { x: "score", y: "label", stroke: "var(--no)", strokeWidth: 2 }),
          ],
        })
      }
    />
  );
}

const jitter = (place: number) => (((place * 0.618034) % 1) - 0.5) * 0.3;

/** Mean label in twelve score bins of equal size. */
function means(points: { score: number; label: number }[]) {
  const sorted = [...points].sort((a, b) => a.score - b.score);
  const size = Math.max(1, Math.ceil(sorted.length / 12));
  const mean = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const bins = [];
  for (let start = 0; start < sorted.length; start += size) {
    const bin = sorted.slice(start, start + size);
    bins.push({ score: mean(bin.map(({ score }) => score)), label: mean(bin.map(({ label }) => label)) });
  }
  return bins;
}

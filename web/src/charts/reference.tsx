// Ratings by the judge against reference ratings, such as Elo from human votes.

import * as Plot from "@observablehq/plot";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { shortened } from "../format";
import { to } from "../routes";
import { draw } from "./plot";

export function ReferenceChart() {
  const { head } = useReport();
  const rows = head.candidates.filter((row) => row.reference !== null && row.rating !== null);
  if (rows.length < 2) return null;
  const references = rows.map(({ reference }) => reference!);
  const middle = (Math.min(...references) + Math.max(...references)) / 2;
  return (
    <Chart
      run={head.run}
      title="Ratings and reference ratings"
      lead={`${rows.length} candidates with both ratings`}
      how="One dot per candidate: its rating by this judge, with the interval, against the reference rating from the benchmark."
      rows={<><FileLink head={head} name="ranking.json" /> and <FileLink head={head} name="inputs/ratings.jsonl" /></>}
      table={() => ({
        columns: ["candidate", "rating", "low", "high", "reference"],
        rows: rows.map(({ name, rating, reference }) => [name, rating!.value, rating!.low, rating!.high, reference]),
      })}
      draw={(width) =>
        draw(width, {
          height: Math.min(460, Math.max(280, width * 0.7)),
          marginRight: 20,
          inset: 14,
          x: { label: "Reference rating", grid: true },
          y: { label: "Rating by this judge", grid: true },
          marks: [
            Plot.ruleX(rows.filter(({ rating }) => rating!.low !== null && rating!.high !== null), {
              x: "reference", y1: (row) => row.rating.low, y2: (row) => row.rating.high,
              stroke: "var(--accent)", strokeOpacity: 0.35, strokeWidth: 3,
            }),
            Plot.dot(rows, {
              x: "reference", y: (row) => row.rating.value, r: 4, fill: "var(--accent)",
              href: (row) => to.candidate(row.name), target: "_self", title: "name",
            }),
            // Names are beside the intervals, inside the frame.
            ...(["start", "end"] as const).map((textAnchor) =>
              Plot.text(rows.filter(({ reference }) => (reference! > middle) === (textAnchor === "end")), {
                x: "reference", y: (row) => row.rating.value, text: (row) => shortened(row.name, 22),
                dx: textAnchor === "end" ? -6 : 6, textAnchor,
                fontSize: 10.5, stroke: "var(--card)", strokeWidth: 3, fill: "var(--ink)", pointerEvents: "none",
              }),
            ),
          ],
        })
      }
    />
  );
}

// Ratings with intervals.

import * as Plot from "@observablehq/plot";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { to } from "../routes";
import { axisNames } from "./names";
import { draw, lettersIn, nameRoom } from "./plot";

const MOST = 100;

export function RatingChart() {
  const { head } = useReport();
  const ranked = head.candidates.filter((row) => row.rating !== null).slice(0, MOST);
  if (!ranked.length) return null;
  return (
    <Chart
      run={head.run}
      title="Ratings"
      lead={`${Math.round(100 * head.level)}% intervals${ranked.length === MOST ? `, top ${MOST}` : ""}`}
      how="Bradley-Terry fit to all pairs of scores on each query, on the Elo scale. Intervals come from resampled queries."
      rows={<FileLink head={head} name="ranking.json" />}
      table={() => ({
        columns: ["candidate", "rating", "low", "high"],
        rows: ranked.map(({ name, rating }) => [name, rating!.value, rating!.low, rating!.high]),
      })}
      draw={(width) => {
        const room = nameRoom(width, ranked.map(({ name }) => name));
        const labels = axisNames(ranked.map(({ name }) => name), lettersIn(room));
        const rows = ranked.map((row, place) => ({ ...row, label: labels[place]! }));
        const ends = rows.flatMap(({ rating }) => [rating!.value, rating!.low, rating!.high]);
        const known = ends.filter((end): end is number => end !== null);
        const [low, high] = [Math.min(...known), Math.max(...known)];
        return draw(width, {
          marginLeft: room,
          height: 60 + 20 * rows.length,
          x: { label: "Rating", grid: true, nice: true },
          y: { label: null, domain: labels },
          marks: [
            Plot.ruleY(rows, {
              y: "label", x1: (row) => row.rating.low ?? low, x2: (row) => row.rating.high ?? high,
              stroke: "var(--accent)", strokeOpacity: 0.4, strokeWidth: 4, strokeLinecap: "round",
            }),
            Plot.dot(rows, {
              y: "label", x: (row) => row.rating.value, r: 4, fill: "var(--accent)",
              href: (row) => to.candidate(row.name), target: "_self", title: "name",
            }),
          ],
        });
      }}
    />
  );
}

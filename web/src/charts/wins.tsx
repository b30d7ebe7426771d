// Win rates of all pairs.

import * as Plot from "@observablehq/plot";
import { useReport } from "../context";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { to } from "../routes";
import { axisNames } from "./names";
import { draw, lettersIn, nameRoom } from "./plot";

const NUMBERED = 26;
const LINKED = 50;

interface Cell {
  row: string;
  column: string;
  share: number;
  href: string;
  title: string;
}

export function WinChart() {
  const { head } = useReport();
  const names = head.candidates.slice(0, head.wins.length).map(({ name }) => name);
  if (names.length < 2) return null;
  const left = head.candidates.length - names.length;
  return (
    <Chart
      run={head.run}
      title="Win rates"
      lead={`Percentage of queries that the row wins against the column; a tie counts half. Columns: candidates in leaderboard order${left > 0 ? `, top ${names.length}` : ""}`}
      how={`A pair is compared on the queries that both have a score on. Scores that differ by less than ${head.tie_margin} count as a tie. Blue is above 50%, orange below; empty if two candidates share no query.`}
      rows={<><FileLink head={head} name="ranking.json" />{names.length <= LINKED ? "; click a cell to open the comparison" : ""}</>}
      table={() => ({
        columns: ["candidate", ...names],
        rows: head.wins.map((row, place) => [names[place]!, ...row]),
      })}
      draw={(width) => drawn(width, names, head.wins)}
    />
  );
}

function drawn(width: number, names: string[], wins: (number | null)[][]) {
  const room = Math.min(nameRoom(width, names), width * 0.36);
  const labels = axisNames(names, lettersIn(room));
  const numbers = names.map((_, place) => String(place + 1));
  const cells = wins.flatMap((row, from) =>
    row.flatMap((share, against): Cell[] =>
      share === null
        ? []
        : [{
            row: labels[from]!, column: numbers[against]!, share,
            href: to.compare(names[from]!, names[against]!),
            title: `${names[from]} beats ${names[against]} on ${(100 * share).toFixed(0)}% of the queries that both have a score on`,
          }],
    ),
  );
  const size = (width - room - 10) / names.length;
  const written = names.length <= NUMBERED && size >= 17;
  return draw(width, {
    marginLeft: room,
    marginTop: 26,
    marginBottom: 10,
    marginRight: 10,
    height: 40 + Math.max(12, Math.min(size, 24)) * names.length,
    padding: 0.04,
    x: { label: null, domain: numbers, axis: "top", tickSize: 0, ...(written ? {} : { ticks: [] }) },
    y: { label: null, domain: labels, tickSize: 0 },
    color: { type: "diverging", domain: [0, 1], pivot: 0.5, range: ["#d8742a", "#f2efe9", "#2a78b5"], interpolate: "rgb" },
    marks: [
      Plot.cell(cells, {
        x: "column", y: "row", fill: "share",
        // Ten thousand links and titles would take seconds to create.
        ...(names.length <= LINKED ? { href: "href", target: "_self", title: "title" } : {}),
      }),
      ...(written
        ? [Plot.text(cells, {
            x: "column", y: "row", text: (cell) => (100 * cell.share).toFixed(0),
            fill: (cell) => (cell.share > 0.86 ? "#ffffff" : "#181c21"),
            fontSize: Math.min(11, size * 0.5), pointerEvents: "none",
          })]
        : []),
    ],
  });
}

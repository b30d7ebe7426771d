// One candidate in a heat map.

import type { ItemFigure } from "../contract";
import { useReport } from "../context";
import { two } from "../format";
import { heat } from "../parts/heat";
import { Name } from "../parts/words";
import { to } from "../routes";
import { oddWords } from "./answer_list";
import type { HeatOrder } from "./heat_order";
import type { Sheet } from "./sheet";

/** What colours show: the answer, or how far it lies from the item's mean. */
export type Tint = "answer" | "apart";

interface RowProps {
  sheet: Sheet;
  candidate: number;
  tint: Tint;
  sorted: HeatOrder["by"];
}

export function HeatRow({ sheet, candidate, tint, sorted }: RowProps) {
  const { name, rank } = useReport().head.candidates[candidate]!;
  const score = sheet.scores[candidate] ?? null;
  const most = sheet.mostDisputed;
  return (
    <tr>
      <th scope="row">
        <span class="rank">{rank ?? ""}</span>
        <a href={to.response(name, sheet.id)}><Name>{name}</Name></a>
      </th>
      <td class="number"><b>{score === null ? "\u2013" : two(score)}</b></td>
      {sheet.block.items.map((_, item) => {
        const marks = `${item === most ? "most" : ""} ${item === sorted ? "sorted" : ""}`;
        return <HeatCell key={item} {...{ sheet, candidate, item, tint, marks }} />;
      })}
    </tr>
  );
}

interface CellProps {
  sheet: Sheet;
  candidate: number;
  item: number;
  tint: Tint;
  marks: string;
}

function HeatCell({ sheet, candidate, item, tint, marks }: CellProps) {
  const p = sheet.answers[candidate]?.[item] ?? null;
  const odd = sheet.odd(candidate, item);
  const look = heat(tint === "answer" ? p : apart(p, sheet.block.figures[item]!));
  return (
    <td
      class={`${look.class} ${marks} ${odd ? "odd" : ""}`}
      style={look.style}
      title={odd ? oddWords(odd) : undefined}
    >
      {p === null ? <span class="spoken">missing</span> : two(p)}
    </td>
  );
}

/** Two standard deviations above the mean look like a sure yes. */
function apart(p: number | null, { mean, spread }: ItemFigure): number | null {
  if (p === null || mean === null || !spread) return p === null ? null : 0.5;
  return Math.min(1, Math.max(0, 0.5 + (p - mean) / (4 * spread)));
}

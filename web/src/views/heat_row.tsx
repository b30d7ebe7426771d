// One candidate in a heat map.

import type { ItemFigure } from "../contract";
import { useReport } from "../context";
import { two } from "../format";
import { heat } from "../parts/heat";
import { Name } from "../parts/words";
import { to } from "../routes";
import { inapplicable, oddWords } from "./reader_checklist";
import type { HeatOrder } from "./heat_order";
import type { QueryResults } from "./sheet";

/** What colors show: the answer, or its difference from the item's mean. */
export type Tint = "answer" | "apart";

interface RowProps {
  results: QueryResults;
  candidate: number;
  tint: Tint;
  sorted: HeatOrder["by"];
}

export function HeatRow({ results, candidate, tint, sorted }: RowProps) {
  const { name, rank } = useReport().head.candidates[candidate]!;
  const score = results.scores[candidate] ?? null;
  const most = results.mostDisputed;
  return (
    <tr>
      <th scope="row">
        <span class="rank">{rank ?? ""}</span>
        <a href={to.response(name, results.id)}><Name>{name}</Name></a>
      </th>
      <td class="number"><b>{score === null ? "\u2013" : two(score)}</b></td>
      {results.block.items.map((_, item) => {
        const marks = `${item === most ? "most" : ""} ${item === sorted ? "sorted" : ""}`;
        return <HeatCell key={item} {...{ results, candidate, item, tint, marks }} />;
      })}
    </tr>
  );
}

interface CellProps {
  results: QueryResults;
  candidate: number;
  item: number;
  tint: Tint;
  marks: string;
}

function HeatCell({ results, candidate, item, tint, marks }: CellProps) {
  const p = results.answers[candidate]?.[item] ?? null;
  const odd = results.odd(candidate, item);
  const meaning = results.meaning(candidate, item);
  const notes = [meaning?.words, inapplicable(meaning), odd && oddWords(odd)].filter(Boolean);
  const isInapplicable = (meaning?.na ?? 0) >= 0.5;
  const look = heat(isInapplicable ? null : tint === "answer" ? p : apart(p, results.block.figures[item]!));
  return (
    <td
      class={`${look.class} ${marks} ${odd ? "odd" : ""}`}
      style={look.style}
      title={notes.length ? notes.join("; ") : undefined}
    >
      {p === null ? <span class="spoken">unanswered</span> : isInapplicable ? "n/a" : two(p)}
    </td>
  );
}

/** Maps the mean to 0.5, and two standard deviations above it to 1. */
function apart(p: number | null, { mean, spread }: ItemFigure): number | null {
  if (p === null || mean === null || !spread) return p === null ? null : 0.5;
  return Math.min(1, Math.max(0, 0.5 + (p - mean) / (4 * spread)));
}

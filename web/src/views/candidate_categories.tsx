// A candidate's mean score by category, compared with the other candidates.

import { useReport } from "../context";
import { count, two } from "../format";
import { GapBar, ScoreBar } from "../parts/score_bar";
import { Name, Section } from "../parts/words";
import type { Queries } from "../report";
import { categoryRows, type CandidateRow, type CategoryRow } from "./candidate_rows";
import { gapWords } from "./gaps";

export function CandidateCategories(props: { queries: Queries; rows: CandidateRow[] }) {
  const categories = categoryRows(props.queries, props.rows);
  if (categories.length < 2) return null;
  const most = Math.max(...categories.map(({ gap }) => Math.abs(gap ?? 0)));
  return (
    <Section
      title="Results by category"
      lead="Mean scores; the categories in which it trails the other candidates most come first."
    >
      <div class="scroll">
        <table class="categories">
          <thead>
            <tr>
              <th scope="col">Category</th>
              <th scope="col" class="number">Queries</th>
              <th scope="col">Mean score</th>
              <th scope="col">Other candidates</th>
              <th scope="col">Difference</th>
            </tr>
          </thead>
          <tbody>
            {categories.map((row) => <Line key={row.category} row={row} most={most} />)}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Line({ row, most }: { row: CategoryRow; most: number }) {
  const { scale } = useReport().head;
  return (
    <tr>
      <th scope="row"><Name>{row.category || "no category"}</Name></th>
      <td class="number">{count(row.queries)}</td>
      <td class="measure"><b>{two(row.score)}</b><ScoreBar score={row.score} scale={scale} /></td>
      <td class="measure">{row.others === null ? "\u2013" : two(row.others)}</td>
      <td class="measure">
        {row.gap !== null && <><b>{gapWords(row.gap)}</b><GapBar gap={row.gap} most={most} /></>}
      </td>
    </tr>
  );
}

// A candidate's mean score by slice, compared with the other candidates.

import type { Interval } from "../contract";
import { useReport } from "../context";
import { capital, count, ends, two } from "../format";
import { Choice } from "../parts/choice";
import { useKept } from "../parts/kept";
import { GapBar, ScoreBar } from "../parts/score_bar";
import { Name, Section } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import { sliceRows, type CandidateRow, type SliceRow } from "./candidate_rows";
import { gapWords } from "./gaps";
import { chosenField, isBounded, slicedFields, sliceOf } from "../slices";

interface SlicesProps {
  queries: Queries;
  rows: CandidateRow[];
  candidate: number;
}

export function CandidateSlices({ queries, rows, candidate }: SlicesProps) {
  const { head } = useReport();
  const fields = slicedFields(head);
  const [by, setBy] = useKept("by", "");
  const chosen = chosenField(fields, by);
  if (!chosen) return null;
  const slices = sliceRows(queries, rows, chosen.field);
  const most = Math.max(...slices.map(({ gap }) => Math.abs(gap ?? 0)));
  const { name } = head.candidates[candidate]!;
  return (
    <Section
      title={`Results by ${chosen.field}`}
      lead="Mean scores; the slices in which it trails the other candidates most come first."
    >
      {fields.length > 1 && (
        <Choice label="Group by" value={chosen.field} options={fields.map(({ field }) => [field, field])} onChoice={setBy} />
      )}
      <div class="scroll">
        <table class="categories">
          <thead>
            <tr>
              <th scope="col">{capital(chosen.field)}</th>
              <th scope="col" class="number">Queries</th>
              <th scope="col">Mean score</th>
              <th scope="col">Other candidates</th>
              <th scope="col">Difference</th>
            </tr>
          </thead>
          <tbody>
            {slices.map((row) => (
              <Line
                key={row.name} row={row} most={most}
                href={to.read({ in: sliceOf(chosen.field, row.name), c: name, sort: "low" })}
                mean={chosen.slices.find((slice) => slice.name === row.name)?.means[candidate] ?? null}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{chosen.note}</p>
    </Section>
  );
}

/** `mean` is the run's mean with its interval; the row has those of the scores in this page. */
function Line(props: { row: SliceRow; most: number; href: string; mean: Interval | null }) {
  const { row, most, mean } = props;
  const { scale } = useReport().head;
  const score = mean?.value ?? row.score;
  return (
    <tr>
      <th scope="row"><a href={props.href}><Name>{row.name}</Name></a></th>
      <td class="number">{count(row.queries)}</td>
      <td class="measure">
        <b>{two(score)}</b><ScoreBar score={score} scale={scale} />{" "}
        {mean !== null && isBounded(mean) && <small>{ends(mean, "score")}</small>}
      </td>
      <td class="measure">{row.others === null ? "\u2013" : two(row.others)}</td>
      <td class="measure">
        {row.gap !== null && <><b>{gapWords(row.gap)}</b><GapBar gap={row.gap} most={most} /></>}
      </td>
    </tr>
  );
}

// The evaluator's confidence, its accuracy by confidence, and the cases for human review.

import type { DescribedConfidence, DescribedRun, EvaluatorBlock } from "../contract";
import { ConfidenceChart, isAt } from "../charts/confidence";
import { SurenessChart } from "../charts/sureness";
import { count, ends, figure, plural, share, two } from "../format";
import { axisAround, IntervalBar } from "../parts/interval_bar";
import { ScoreBar } from "../parts/score_bar";
import { Section } from "../parts/words";

export function EvaluatorConfidence({ block }: { block: EvaluatorBlock }) {
  const { confidence, run } = block;
  if (!confidence.length && run === null) return null;
  return (
    <Section
      title="Confidence"
      lead="Confident verdicts should be right more often. Leave verdicts with low confidence to people."
    >
      {run !== null && <Advice run={run} rows={confidence} />}
      <div class="charts">
        {confidence.length > 0 && <ConfidenceChart rows={confidence} threshold={run?.threshold ?? null} />}
        {run !== null && <SurenessChart run={run} decides={block.decides} />}
      </div>
      {confidence.length > 0 && <Rows rows={confidence} threshold={run?.threshold ?? null} />}
    </Section>
  );
}

function Advice({ run, rows }: { run: DescribedRun; rows: DescribedConfidence[] }) {
  if (run.threshold === null)
    return rows.length === 0 ? null : (
      <p class="notice">No threshold is recommended: none reached the required accuracy in validation.</p>
    );
  const row = rows.find((each) => isAt(each, run.threshold));
  return (
    <p class="notice">
      <b>{count(run.to_person)} of {plural(run.cases, "case", "cases")}</b> of this run
      {run.cases > 0 && <> ({share(run.to_person / run.cases)})</>} are below the recommended
      confidence of {two(run.threshold)} and need human review.
      {row?.accuracy && <> In validation, {figure(row.accuracy, "share")} of the verdicts at or above
        it were right, on {share(row.coverage)} of the cases.</>}
    </p>
  );
}

function Rows({ rows, threshold }: { rows: DescribedConfidence[]; threshold: number | null }) {
  const axis = axisAround(rows.map(({ accuracy }) => accuracy));
  const chosen = rows.find((each) => isAt(each, threshold));
  return (
    <details class="sureness-rows">
      <summary>Show as table</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Confidence at least</th><th scope="col">Cases</th>
              <th scope="col" colSpan={2}>Accuracy</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.threshold} class={row === chosen ? "chosen" : ""}>
                <th scope="row">{two(row.threshold)}{row === chosen && <small>recommended</small>}</th>
                <td>
                  <span class="measure"><b>{share(row.coverage)}</b> <ScoreBar score={row.coverage} scale={[0, 1]} /></span>
                  <small>{count(row.cases)}</small>
                </td>
                <td class="number">
                  {row.accuracy === null
                    ? "\u2013"
                    : <>{share(row.accuracy.value)}<small>{ends(row.accuracy, "share")}</small></>}
                </td>
                <td class="drawn"><IntervalBar of={row.accuracy} axis={axis} unit="share" /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

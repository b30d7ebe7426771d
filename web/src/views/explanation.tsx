// The items on which a candidate loses points to its neighbors in the ranking.

import type { LostItem } from "../contract";
import { useReport } from "../context";
import { capital, two } from "../format";
import { NEIGHBORS, points } from "../parts/explained";
import { AnswerBar } from "../parts/heat";
import { answerName, Name, Section } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";

export function Explanation({ queries, candidate }: { queries: Queries; candidate: number }) {
  const { head } = useReport();
  const found = head.explained.find((each) => each.candidate === candidate);
  if (found === undefined) return null;
  return (
    <Section
      title="Where it loses points"
      lead={<>
        {NEIGHBORS} Overall: {points(found)}. On the items below it loses the most points of its score
        on one query.
      </>}
    >
      {found.losses.length === 0
        ? <p class="hint">Its neighbors are not clearly better on any item.</p>
        : <Losses losses={found.losses} queries={queries} candidate={candidate} />}
    </Section>
  );
}

function Losses(props: { losses: LostItem[]; queries: Queries; candidate: number }) {
  const { head } = useReport();
  const { name } = head.candidates[props.candidate]!;
  return (
    <div class="scroll">
      <table class="losses-table">
        <thead>
          <tr>
            <th scope="col" class="number">Points lost</th>
            <th scope="col">Item</th>
            <th scope="col">Query</th>
            <th scope="col" title={head.answers_are}>{capital(answerName(head))}</th>
            <th scope="col">Mean of neighbors</th>
          </tr>
        </thead>
        <tbody>
          {props.losses.map((loss) => {
            const id = props.queries.table.id[loss.query]!;
            return (
              <tr key={`${loss.query} ${loss.item}`}>
                <td class="number" data-label="Points lost"><b>{two(loss.points)}</b></td>
                <th scope="row" dir="auto">{loss.text}</th>
                <td>
                  <a href={to.response(name, id)}><Name>{id}</Name></a>{" "}
                  <small>item {loss.item}</small>
                </td>
                <td class="measure" data-label={capital(answerName(head))}><b>{two(loss.p_yes)}</b><AnswerBar p={loss.p_yes} /></td>
                <td class="measure" data-label="Mean of neighbors">
                  <b>{two(loss.neighbours_p_yes)}</b><AnswerBar p={loss.neighbours_p_yes} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

// Items on which each candidate loses to its neighbors in the ranking.

import type { Explained as Found, Head, LostItem } from "../contract";
import { change, turned, two } from "../format";
import { to } from "../routes";
import { Opened } from "./opened";
import { useReport } from "../context";
import { answerName, Name, Section } from "./words";

const FIRST = 6;

export function Explained({ head }: { head: Head }) {
  if (!head.explained.length) return null;
  return (
    <Section id="explained"
      title="Where candidates gain and lose points"
      lead={`${NEIGHBORS} Below each candidate are the items on which it loses the most points of its score on one query.`}
    >
      <div class="explained">{head.explained.slice(0, FIRST).map((found) => <One key={found.candidate} found={found} head={head} />)}</div>
      {head.explained.length > FIRST && (
        <details>
          <summary>{head.explained.length - FIRST} more candidates</summary>
          <div class="explained">{head.explained.slice(FIRST).map((found) => <One key={found.candidate} found={found} head={head} />)}</div>
        </details>
      )}
    </Section>
  );
}

function One({ found, head }: { found: Found; head: Head }) {
  const name = head.candidates[found.candidate]!.name;
  return (
    <article>
      <h3><a href={to.candidate(name)}><Name>{name}</Name></a> <small>{points(found)}</small></h3>
      <LostItems losses={found.losses.slice(0, 2)} />
    </article>
  );
}

/** Names the comparison; the number is NEIGHBOURS in `src/rocketeval/explain/candidate.py`. */
export const NEIGHBORS =
  "On each query, a candidate is compared with its neighbors: the four nearest in the ranking that have a score, or all others if there are fewer.";

/** Points gained per query, negative if lost, as a phrase. */
export const points = ({ points: found }: Pick<Found, "points">): string =>
  found === null ? "no comparison" : change(turned(found), "points per query");

export function LostItems({ losses }: { losses: LostItem[] }) {
  const report = useReport();
  const { head } = report;
  if (!losses.length) return <p class="hint">It loses no points to its neighbors on any item.</p>;
  return (
    <Opened name="queries" open={() => report.queries()}>
      {(queries) => (
        <ul class="lost-items">
          {losses.map((loss) => (
            <li key={`${loss.query} ${loss.item}`}>
              <b>{"\u2212"}{two(loss.points)} points</b>{" "}
              <span dir="auto">{loss.text}</span>{" "}
              <small>
                {answerName(head)} {two(loss.p_yes)}, mean of neighbors {two(loss.neighbours_p_yes)};{" "}
                <a href={to.query(queries.table.id[loss.query]!)}><Name>{queries.table.id[loss.query]!}</Name></a>{" "}
                item {loss.item}
              </small>
            </li>
          ))}
        </ul>
      )}
    </Opened>
  );
}

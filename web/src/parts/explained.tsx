// Items on which each candidate loses to its neighbors in the ranking.

import type { Explained as Found, Head, LostItem } from "../contract";
import { ends, turned, two } from "../format";
import { to } from "../routes";
import { Opened } from "./opened";
import { useReport } from "../context";
import { Name, Section } from "./words";

const FIRST = 6;

export function Explained({ head }: { head: Head }) {
  if (!head.explained.length) return null;
  return (
    <Section
      title="Where candidates lose points"
      lead="Each candidate compared with its neighbors in the ranking: the items on which it loses the most points to them."
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

/** Points lost or gained per query, as a phrase. */
export function points({ points: found }: Found): string {
  if (found === null) return "no comparison";
  const gains = found.value < 0;
  const shown = gains ? turned(found) : found;
  const reach = ends(shown, "number");
  return `${gains ? "gains" : "loses"} ${two(shown.value)} points per query${reach ? ` (${reach})` : ""}`;
}

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
              <b>{"\u2212"}{loss.points.toFixed(2)}</b>{" "}
              <span dir="auto">{loss.text}</span>{" "}
              <small>
                {head.yes_no ? "yes" : "grade"} {two(loss.p_yes)}, neighbors {two(loss.neighbours_p_yes)},{" "}
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

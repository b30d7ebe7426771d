// Links to the responses of all candidates to the same query.

import { useState } from "preact/hooks";
import { useReport } from "../context";
import { count, two } from "../format";
import { ScoreBar } from "../parts/score_bar";
import { Name, Section } from "../parts/words";
import { to } from "../routes";
import { ordered } from "./heat_order";
import type { QueryResults } from "./sheet";

const FIRST = 60;

export function OtherResponses({ results, candidate }: { results: QueryResults; candidate: number }) {
  const [whole, setWhole] = useState(false);
  const { head } = useReport();
  const order = ordered(results, { by: "score", down: true });
  const shown = whole ? order : order.slice(0, FIRST);
  return (
    <Section title="All candidates on this query">
      <ol class="others">
        {shown.map((other) => {
          const { name } = head.candidates[other]!;
          const score = results.scores[other] ?? null;
          return (
            <li key={other}>
              <a
                href={to.response(name, results.id)}
                aria-current={other === candidate ? "true" : undefined}
              >
                <b>{score === null ? "\u2013" : two(score)}</b>
                <ScoreBar score={score} scale={head.scale} />
                <Name>{name}</Name>
              </a>
            </li>
          );
        })}
      </ol>
      {shown.length < order.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {count(order.length)}
        </button>
      )}
    </Section>
  );
}

// The items of one response with their answers.

import { useReport } from "../context";
import { two } from "../format";
import { AnswerBar } from "../parts/heat";
import { Name, Tag } from "../parts/words";
import { itemGroups } from "./item_groups";
import { ItemWeight } from "./item_weight";
import type { Meaning, QueryResults } from "./sheet";

export function AnswerList({ results, candidate }: { results: QueryResults; candidate: number }) {
  const { items, groups } = results.block;
  return (
    <>
      {itemGroups(groups, items.length).map(({ name, items: own }) => (
        <>
          {name !== null && <h3 class="group"><Name>{name}</Name></h3>}
          <ol class="answers" start={own[0]! + 1}>
            {own.map((item) => (
              <li key={item}>
                <p dir="auto">{items[item]}</p>
                <Answer results={results} candidate={candidate} item={item} />
              </li>
            ))}
          </ol>
        </>
      ))}
    </>
  );
}

function Answer(props: { results: QueryResults; candidate: number; item: number }) {
  const { results, candidate, item } = props;
  const p = results.answers[candidate]?.[item] ?? null;
  const odd = results.odd(candidate, item);
  const figure = results.block.figures[item];
  const meaning = results.meaning(candidate, item);
  return (
    <p class="answer">
      <AnswerBar p={p} low={odd?.low} high={odd?.high} />
      <AnswerNumber p={p} meaning={meaning} />
      <ItemWeight figure={figure} />
      {figure?.verdict === "dead" && <Tag>{figure.why || "dead"}</Tag>}
      {odd !== undefined && <small class="odd">{oddWords(odd)}</small>}
    </p>
  );
}

/** The answer as a number, with its meaning: yes or no, a level, the result of a check. */
function AnswerNumber({ p, meaning }: { p: number | null; meaning: Meaning | undefined }) {
  const { head } = useReport();
  if (p === null) return <b class="loud">unanswered</b>;
  const word = meaning?.words || (head.yes_no ? (p >= 0.5 ? "yes" : "no") : "");
  const na = inapplicable(meaning);
  return (
    <b>
      <span class="spoken">{meaning?.words ? "Value" : head.answers_are} </span>
      {two(p)} {word && <small>{word}</small>} {na && <Tag>{na}</Tag>}
    </b>
  );
}

/** How likely an item is not applicable, in words; empty if that rounds to 0. */
export function inapplicable(meaning: Meaning | undefined): string {
  const na = meaning?.na ?? 0;
  return na < 0.005 ? "" : `not applicable: ${two(na)}`;
}

export function oddWords(odd: { low: number | null; high: number | null; why: string }): string {
  if (odd.low === null || odd.high === null) return odd.why;
  return `${odd.why}: between ${two(odd.low)} and ${two(odd.high)}`;
}

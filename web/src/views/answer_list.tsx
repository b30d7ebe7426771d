// What one response got: every item with its answer.

import { useReport } from "../context";
import { two } from "../format";
import { AnswerBar } from "../parts/heat";
import { Name, Tag } from "../parts/words";
import { itemGroups } from "./item_groups";
import { ItemWeight } from "./item_weight";
import type { Sheet } from "./sheet";

export function AnswerList({ sheet, candidate }: { sheet: Sheet; candidate: number }) {
  const { items, groups } = sheet.block;
  return (
    <>
      {itemGroups(groups, items.length).map(({ name, items: own }) => (
        <>
          {name !== null && <h3 class="group"><Name>{name}</Name></h3>}
          <ol class="answers" start={own[0]! + 1}>
            {own.map((item) => (
              <li key={item}>
                <p dir="auto">{items[item]}</p>
                <Answer sheet={sheet} candidate={candidate} item={item} />
              </li>
            ))}
          </ol>
        </>
      ))}
    </>
  );
}

function Answer(props: { sheet: Sheet; candidate: number; item: number }) {
  const { sheet, candidate, item } = props;
  const p = sheet.answers[candidate]?.[item] ?? null;
  const odd = sheet.odd(candidate, item);
  const figure = sheet.block.figures[item];
  return (
    <p class="answer">
      <AnswerBar p={p} low={odd?.low} high={odd?.high} />
      <AnswerNumber p={p} />
      <ItemWeight figure={figure} />
      {figure?.verdict === "dead" && <Tag>{figure.why || "dead"}</Tag>}
      {odd !== undefined && <small class="odd">{oddWords(odd)}</small>}
    </p>
  );
}

/** The number, in the words of what answers are in this run. */
function AnswerNumber({ p }: { p: number | null }) {
  const { head } = useReport();
  if (p === null) return <b class="loud">missing</b>;
  const word = head.yes_no ? (p >= 0.5 ? "yes" : "no") : "";
  return (
    <b>
      <span class="spoken">{head.answers_are} </span>{two(p)} {word && <small>{word}</small>}
    </b>
  );
}

export function oddWords(odd: { low: number | null; high: number | null; why: string }): string {
  if (odd.low === null || odd.high === null) return odd.why;
  return `${odd.why}: between ${two(odd.low)} and ${two(odd.high)}`;
}

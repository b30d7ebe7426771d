// Two responses to one query side by side, with their answers.

import { useReport } from "../context";
import { two } from "../format";
import { Clipped } from "../parts/clipped";
import { AnswerBar } from "../parts/heat";
import { Opened } from "../parts/opened";
import { GapBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import { to } from "../routes";
import { NotHere } from "./detail_note";
import { gapWords } from "./gaps";
import { itemGroups } from "./item_groups";
import { ItemWeight } from "./item_weight";
import type { Names } from "./names";
import { ResponseText } from "./response_text";
import { openQueryResults, type QueryResults } from "./sheet";

export function PairedResponses(props: { query: number; names: Names }) {
  const report = useReport();
  return (
    <Opened
      name={`query ${props.query}`}
      open={() => openQueryResults(report, props.query)}
      absent={<NotHere what="The two responses and their answers are" />}
    >
      {(results) => <PairedResults results={results} names={props.names} />}
    </Opened>
  );
}

function PairedResults({ results, names }: { results: QueryResults; names: Names }) {
  const { head, places } = useReport();
  const sides = names.map((name) => places.get(name)!);
  return (
    <>
      <p class="hint"><a href={to.query(results.id)}>Show this query with all candidates</a></p>
      <Clipped>{results.block.text}</Clipped>
      <PairedItems results={results} sides={sides} />
      <div class="halves">
        {sides.map((candidate) => {
          const { name } = head.candidates[candidate]!;
          return (
            <div key={candidate} class="side">
              <h3><a href={to.response(name, results.id)}><Name>{name}</Name></a></h3>
              <ResponseText results={results} candidate={candidate} clip />
            </div>
          );
        })}
      </div>
    </>
  );
}

/** Answers side by side; the items with the largest differences are marked. */
function PairedItems({ results, sides }: { results: QueryResults; sides: number[] }) {
  const { head } = useReport();
  const rows = results.block.items.map((text, item) => {
    const answers = sides.map((candidate) => results.answers[candidate]?.[item] ?? null);
    const [a, b] = answers;
    return { text, item, answers, gap: a != null && b != null ? a - b : null };
  });
  const most = Math.max(0, ...rows.map(({ gap }) => Math.abs(gap ?? 0)));
  return (
    <div class="scroll">
      <table class="paired-items">
        <caption class="spoken">{head.answers_are} for both candidates</caption>
        <thead>
          <tr>
            <th scope="col"><span class="spoken">Number</span></th>
            <th scope="col">Item</th>
            {sides.map((candidate) => (
              <th key={candidate} scope="col"><Name>{head.candidates[candidate]!.name}</Name></th>
            ))}
            <th scope="col">Difference</th>
          </tr>
        </thead>
        {itemGroups(results.block.groups, rows.length).map(({ name, items }) => (
          <tbody key={items[0]}>
            {name !== null && (
              <tr class="group"><th scope="rowgroup" colSpan={5}><Name>{name}</Name></th></tr>
            )}
            {items.map((item) => {
              const row = rows[item]!;
              const isMost = most >= 0.1 && Math.abs(row.gap ?? 0) >= 0.8 * most;
              return <PairedItem key={item} {...row} results={results} isMost={isMost} />;
            })}
          </tbody>
        ))}
      </table>
    </div>
  );
}

interface ItemProps {
  results: QueryResults;
  text: string;
  item: number;
  answers: (number | null)[];
  gap: number | null;
  isMost: boolean;
}

function PairedItem({ results, text, item, answers, gap, isMost }: ItemProps) {
  return (
    <tr class={isMost ? "most" : ""}>
      <td class="number">{item + 1}</td>
      <th scope="row">
        <span dir="auto">{text}</span> {isMost && <Tag mood="fair">differs most</Tag>}
        <ItemWeight figure={results.block.figures[item]} />
      </th>
      {answers.map((p, side) => (
        <td key={side} class="measure">
          <b>{p === null ? <span class="loud">unanswered</span> : two(p)}</b><AnswerBar p={p} />
        </td>
      ))}
      <td class="measure">
        {gap !== null && <><b>{gapWords(gap)}</b><GapBar gap={gap} most={1} /></>}
      </td>
    </tr>
  );
}

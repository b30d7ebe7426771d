// The checklist of one query, with the figures of each item.

import type { Head, ItemFigure } from "../contract";
import { useReport } from "../context";
import { share, two } from "../format";
import { AnswerBar } from "../parts/heat";
import { ScoreBar } from "../parts/score_bar";
import { answerName, Name, Section } from "../parts/words";
import { itemGroups } from "./item_groups";
import type { QueryResults } from "./sheet";
import { VerdictTag } from "./verdicts";

export function Checklist({ results }: { results: QueryResults }) {
  const { head } = useReport();
  const { items, groups, figures } = results.block;
  const highest = Math.max(0, ...figures.map(({ weight }) => weight));
  const heaviest = figures.some(({ weight }) => weight !== highest) ? highest : null;
  const learned = figures.some((figure) => figure.learned);
  const judged = figures.some(({ verdict }) => verdict !== "");
  const answer = answerName(head);
  if (!items.length) {
    return <Section title="Checklist"><p class="loud">This query has no checklist, so nothing was judged.</p></Section>;
  }
  return (
    <Section title="Checklist" lead={`${weighed(head, learned, heaviest !== null)} Bars are blue from 0.5 up and orange below.`}>
      <div class="scroll">
        <table class="checklist">
          <thead>
            <tr>
              <th scope="col"><span class="spoken">Number</span></th>
              <th scope="col">Item</th>
              <th scope="col">Weight</th>
              <th scope="col" title={`${head.answers_are}, mean over all responses`}>Mean {answer}</th>
              <th scope="col" class="number" title={`Standard deviation of ${answer} over all responses`}>
                SD of {answer}
              </th>
              <th
                scope="col"
                class="number"
                title={`Correlation of ${answer} with the score, over the responses to this query`}
              >
                Correlation with score
              </th>
              <th
                scope="col"
                class="number"
                title={`Weight times SD of ${answer}, as a share of the sum over all items`}
              >
                Contribution to score SD
              </th>
              {judged && <th scope="col" class="verdict">Verdict</th>}
            </tr>
          </thead>
          {itemGroups(groups, items.length).map(({ name, items: own }) => (
            <tbody key={own[0]}>
              {name !== null && (
                <tr class="group"><th scope="rowgroup" colSpan={judged ? 8 : 7}><Name>{name}</Name></th></tr>
              )}
              {own.map((item) => (
                <ChecklistRow
                  key={item}
                  text={items[item]!}
                  levels={results.block.rubric?.levels[item] ?? []}
                  figure={figures[item]!}
                  {...{ item, heaviest, judged }}
                />
              ))}
            </tbody>
          ))}
        </table>
      </div>
    </Section>
  );
}

function weighed(head: Head, learned: boolean, differ: boolean): string {
  if (learned) return `Weights were learned from ${head.learned_from || "reference data"}.`;
  if (head.weights === "none") return "This scorer has no weights per item.";
  if (differ) return "The checklist gives the weights; shown are shares of their sum.";
  return "All items have equal weight.";
}

interface RowProps {
  text: string;
  /** Descriptions of a scale's levels, worst first. */
  levels: string[];
  item: number;
  /** null if all weights are equal. */
  heaviest: number | null;
  figure: ItemFigure;
  /** Whether any item of the checklist has a verdict. */
  judged: boolean;
}

function ChecklistRow({ text, levels, item, heaviest, figure, judged }: RowProps) {
  return (
    <tr class={figure.verdict}>
      <td class="number">{item + 1}</td>
      <th scope="row" dir="auto">
        {text}
        {levels.length > 0 && <ol class="levels">{levels.map((level) => <li key={level}>{level}</li>)}</ol>}
      </th>
      <td class="measure">
        <b>{useReport().head.weights === "none" ? "\u2013" : share(figure.weight)}</b>
        {heaviest !== null && <ScoreBar score={figure.weight} scale={[0, heaviest]} />}
      </td>
      <td class="measure"><b>{known(figure.mean)}</b><AnswerBar p={figure.mean} /></td>
      <td class="number">{known(figure.spread)}</td>
      <td class="number">{known(figure.correlation)}</td>
      <td class="number">{figure.influence === null ? "\u2013" : share(figure.influence)}</td>
      {judged && (
        <td class="verdict"><VerdictTag verdict={figure.verdict} /> <small>{figure.why}</small></td>
      )}
    </tr>
  );
}

const known = (value: number | null) => (value === null ? "\u2013" : two(value));

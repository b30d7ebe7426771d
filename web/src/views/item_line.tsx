// One item in a list.

import type { ComponentChildren } from "preact";
import { useReport } from "../context";
import { share, two } from "../format";
import { AnswerBar } from "../parts/heat";
import { ScoreBar } from "../parts/score_bar";
import { answerName, Name, Tag } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import type { ItemRow } from "./item_rows";
import { VerdictTag } from "./verdicts";

/** Column headings; each line repeats them for screen readers. */
export function ItemLineHead() {
  const answer = answerName(useReport().head);
  return (
    <div class="line item-line head" aria-hidden="true">
      <span>Item</span>
      <span title={`Weight times SD of ${answer}, as a share of the sum over the checklist`}>
        Contribution to score SD
      </span>
      <span title={`Standard deviation of ${answer}`}>SD of {answer}</span>
      <span>Mean {answer}</span>
      <span>Correlation with score</span>
      <span>Verdict</span>
    </div>
  );
}

export function ItemLine({ queries, row }: { queries: Queries; row: ItemRow }) {
  const { id } = queries.table;
  const category = queries.category(row.query);
  const { figure } = row;
  return (
    <div class="line item-line">
      <span class="item-what">
        <span class="item-text" dir="auto" title={row.text}>{row.text}</span>
        <span class="item-of">
          <a href={to.query(id[row.query]!)}><Name>{id[row.query]!}</Name></a>{" "}
          <small>item {row.item + 1}</small>{" "}
          {row.group !== null && <Tag><Name>{row.group}</Name></Tag>}{" "}
          {category !== null && <Tag><Name>{category}</Name></Tag>}
        </span>
      </span>
      <Measure name="influence" label="share" more="of score differences">
        <b>{figure.influence === null ? "\u2013" : share(figure.influence)}</b>
        <ScoreBar score={figure.influence} scale={[0, 1]} />
      </Measure>
      <Measure name="spread" label="SD" more="of the answers"><b>{known(figure.spread)}</b></Measure>
      <Measure name="mean" label="mean" more="of the answers"><b>{known(figure.mean)}</b><AnswerBar p={figure.mean} /></Measure>
      <Measure name="correlation" label="correlation" more="with score"><b>{known(figure.correlation)}</b></Measure>
      <span class="item-verdict">
        <VerdictTag verdict={figure.verdict} /> <small title={figure.why}>{figure.why}</small>
      </span>
    </div>
  );
}

const known = (value: number | null) => (value === null ? "\u2013" : two(value));

/** On narrow screens only `label` is visible; screen readers always read both. */
function Measure(props: { name: string; label: string; more: string; children: ComponentChildren }) {
  return (
    <span class={`measure ${props.name}`}>
      <span class="phone-label">{props.label}<span class="spoken"> {props.more}</span></span> {props.children}
    </span>
  );
}

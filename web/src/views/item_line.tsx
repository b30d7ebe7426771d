// One item in a list.

import type { ComponentChildren } from "preact";
import { share, two } from "../format";
import { AnswerBar } from "../parts/heat";
import { ScoreBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import type { ItemRow } from "./item_rows";
import { VerdictTag } from "./verdicts";

/** Column headings; each line repeats them for screen readers. */
export const ItemLineHead = () => (
  <div class="line item-line head" aria-hidden="true">
    <span>Item</span><span>Influence</span><span>Spread</span><span>Mean answer</span>
    <span>Correlation</span><span>Verdict</span>
  </div>
);

export function ItemLine({ queries, row }: { queries: Queries; row: ItemRow }) {
  const { id, category } = queries.table;
  const { figure } = row;
  return (
    <div class="line item-line">
      <span class="item-what">
        <span class="item-text" dir="auto" title={row.text}>{row.text}</span>
        <span class="item-of">
          <a href={to.query(id[row.query]!)}><Name>{id[row.query]!}</Name></a>{" "}
          <small>item {row.item + 1}</small>{" "}
          {row.group !== null && <Tag><Name>{row.group}</Name></Tag>}{" "}
          {category[row.query] !== null && <Tag><Name>{category[row.query]!}</Name></Tag>}
        </span>
      </span>
      <Measure name="influence">
        <b>{figure.influence === null ? "\u2013" : share(figure.influence)}</b>
        <ScoreBar score={figure.influence} scale={[0, 1]} />
      </Measure>
      <Measure name="spread"><b>{known(figure.spread)}</b></Measure>
      <Measure name="mean"><b>{known(figure.mean)}</b><AnswerBar p={figure.mean} /></Measure>
      <Measure name="correlation"><b>{known(figure.correlation)}</b></Measure>
      <span class="item-verdict">
        <VerdictTag verdict={figure.verdict} /> <small title={figure.why}>{figure.why}</small>
      </span>
    </div>
  );
}

const known = (value: number | null) => (value === null ? "\u2013" : two(value));

function Measure(props: { name: string; children: ComponentChildren }) {
  return (
    <span class={`measure ${props.name}`}>
      <span class="phone-label">{props.name}</span> {props.children}
    </span>
  );
}

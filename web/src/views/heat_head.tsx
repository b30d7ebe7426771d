// The sortable column headings of a heat map.

import type { ComponentChildren } from "preact";
import { useReport } from "../context";
import { share } from "../format";
import { ScoreBar } from "../parts/score_bar";
import { Name } from "../parts/words";
import { ariaSort, clicked, type HeatOrder } from "./heat_order";
import { itemGroups } from "./item_groups";
import type { QueryResults } from "./sheet";

export interface HeatHeadProps {
  results: QueryResults;
  order: HeatOrder;
  onOrder: (order: HeatOrder) => void;
}

export function HeatHead({ results, order, onOrder }: HeatHeadProps) {
  const { items, groups, figures } = results.block;
  const heaviest = Math.max(0, ...figures.map(({ weight }) => weight));
  const most = results.mostDisputed;
  const sort = (by: HeatOrder["by"]) => () => onOrder(clicked(order, by));
  return (
    <thead>
      {groups !== null && <Spans groups={groups} />}
      {figures.some(({ weight }) => weight !== heaviest) && (
        <Weights weights={figures.map(({ weight }) => weight)} heaviest={heaviest} />
      )}
      <tr>
        <SortHead by="rank" {...{ order, sort }}><span class="rank">Overall rank,</span>{" "}candidate</SortHead>
        <SortHead by="score" {...{ order, sort }}>Score</SortHead>
        {items.map((text, item) => (
          <th
            key={item}
            scope="col"
            class={item === most ? "most" : ""}
            aria-sort={ariaSort(order, item)}
          >
            <button
              type="button"
              title={text}
              onClick={sort(item)}
            >
              <span class="spoken">Item </span>{item + 1}
              <span class="spoken">{`: ${text}`}</span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function SortHead(props: {
  by: "rank" | "score";
  order: HeatOrder;
  sort: (by: "rank" | "score") => () => void;
  children: ComponentChildren;
}) {
  return (
    <th scope="col" aria-sort={ariaSort(props.order, props.by)}>
      <button type="button" onClick={props.sort(props.by)}>{props.children}</button>
    </th>
  );
}

/** Headings that span the columns of a dimension, or of a group without a dimension. */
function Spans({ groups }: { groups: string[] }) {
  const { head } = useReport();
  const dimensions = new Map(head.groups.map(({ name, dimension }) => [name, dimension]));
  const names = groups.map((name) => dimensions.get(name) ?? name);
  return (
    <tr class="spans">
      <td colSpan={2} />
      {itemGroups(names, names.length).map(({ name, items }) => (
        <th key={items[0]} scope="colgroup" colSpan={items.length} title={name!}>
          <span class="cut"><Name>{name!}</Name></span>
        </th>
      ))}
    </tr>
  );
}

function Weights({ weights, heaviest }: { weights: number[]; heaviest: number }) {
  return (
    <tr class="weights">
      <th scope="row">Weight</th>
      <td />
      {weights.map((weight, item) => (
        <td key={item}>
          <small>{share(weight)}</small><ScoreBar score={weight} scale={[0, heaviest]} />
        </td>
      ))}
    </tr>
  );
}

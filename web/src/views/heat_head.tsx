// The column heads of a heat map: every one sorts by itself.

import type { ComponentChildren } from "preact";
import { share } from "../format";
import { ScoreBar } from "../parts/score_bar";
import { ariaSort, clicked, type HeatOrder } from "./heat_order";
import type { Sheet } from "./sheet";

export interface HeatHeadProps {
  sheet: Sheet;
  order: HeatOrder;
  onOrder: (order: HeatOrder) => void;
  /** The item that is pointed at. */
  onItem: (item: number | null) => void;
}

export function HeatHead({ sheet, order, onOrder, onItem }: HeatHeadProps) {
  const { items, figures } = sheet.block;
  const heaviest = Math.max(0, ...figures.map(({ weight }) => weight));
  const most = sheet.mostDisputed;
  const sort = (by: HeatOrder["by"]) => () => onOrder(clicked(order, by));
  return (
    <thead>
      {figures.some(({ weight }) => weight !== heaviest) && (
        <Weights weights={figures.map(({ weight }) => weight)} heaviest={heaviest} />
      )}
      <tr>
        <SortHead by="rank" {...{ order, sort }}>Candidate</SortHead>
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
              onPointerEnter={() => onItem(item)}
              onPointerLeave={() => onItem(null)}
              onFocus={() => onItem(item)}
              onBlur={() => onItem(null)}
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

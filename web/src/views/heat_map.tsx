// Candidates by items: where they got a yes, and where they part.

import { useMemo, useState } from "preact/hooks";
import { useReport } from "../context";
import { count, two } from "../format";
import { Choice, type Options } from "../parts/choice";
import { useKept } from "../parts/kept";
import { Name, Section } from "../parts/words";
import { itemGroups } from "./item_groups";
import { HeatHead, type HeatHeadProps } from "./heat_head";
import { ordered, type HeatOrder } from "./heat_order";
import { HeatRow, type Tint } from "./heat_row";
import type { Sheet } from "./sheet";

const FIRST = 40;

export function HeatMap({ sheet }: { sheet: Sheet }) {
  const { head } = useReport();
  const [order, setOrder] = useState<HeatOrder>({ by: "score", down: true });
  const [pointed, setPointed] = useState<number | null>(null);
  const [tint, setTint] = useKept<Tint>("heat tint", "answer");
  const item = pointed ?? (typeof order.by === "number" ? order.by : null);
  if (!sheet.block.items.length) return null;
  return (
    <Section title="Answers" lead={<>{head.answers_are}, for every candidate and item.</>}>
      <Disputed sheet={sheet} order={order} onOrder={setOrder} />
      <Tints tint={tint} onTint={setTint} />
      <PointedItem sheet={sheet} item={item} />
      <div class="heat-beside">
        <HeatTable sheet={sheet} order={order} onOrder={setOrder} onItem={setPointed} tint={tint} />
        <Legend sheet={sheet} item={item} />
      </div>
    </Section>
  );
}

function HeatTable(props: HeatHeadProps & { tint: Tint }) {
  const { sheet, order, tint } = props;
  const { head } = useReport();
  const [whole, setWhole] = useState(false);
  const candidates = useMemo(() => ordered(sheet, order), [sheet, order]);
  const shown = whole ? candidates : candidates.slice(0, FIRST);
  return (
    <div>
      <div class="scroll">
        <table class="heat-map">
          <caption class="spoken">{head.answers_are} by candidate and item</caption>
          <HeatHead {...props} />
          <tbody>
            {shown.map((candidate) => (
              <HeatRow key={candidate} {...{ sheet, candidate, tint }} sorted={order.by} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < candidates.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {count(candidates.length)} candidates
        </button>
      )}
    </div>
  );
}

function Tints({ tint, onTint }: { tint: Tint; onTint: (tint: Tint) => void }) {
  const { yes_no } = useReport().head;
  const tints: Options<Tint> = [
    ["answer", `the answer: blue is ${yes_no ? "yes, orange no" : "high, orange low"}`],
    ["apart", "how far from the item's mean: blue above, orange below"],
  ];
  return (
    <div class="tints">
      <Choice label="Colours show" value={tint} options={tints} onChoice={onTint} />
    </div>
  );
}

interface DisputedProps {
  sheet: Sheet;
  order: HeatOrder;
  onOrder: (order: HeatOrder) => void;
}

/** Leads to the item that tells candidates apart most. */
function Disputed({ sheet, order, onOrder }: DisputedProps) {
  const item = sheet.mostDisputed;
  if (item === null) return <p class="hint">All candidates got the same answers.</p>;
  const isSorted = order.by === item;
  return (
    <p class="disputed">
      Candidates disagree most about <b>item {item + 1}</b> (spread{" "}
      {two(sheet.block.figures[item]!.spread!)}).{" "}
      <button
        type="button"
        aria-pressed={isSorted}
        onClick={() => onOrder(isSorted ? { by: "score", down: true } : { by: item, down: true })}
      >
        {isSorted ? "Sorted by it" : "Sort by it"}
      </button>
    </p>
  );
}

interface ItemProps {
  sheet: Sheet;
  item: number | null;
}

/** What the numbers mean, beside the map where there is room. */
function Legend({ sheet, item }: ItemProps) {
  const { items, groups } = sheet.block;
  return (
    <ol class="legend" aria-label="Items">
      {itemGroups(groups, items.length).map(({ name, items: own }) => (
        <>
          {name !== null && <li class="group"><Name>{name}</Name></li>}
          {own.map((place) => (
            <li key={place} dir="auto" value={place + 1} class={place === item ? "pointed" : ""}>
              {items[place]}
            </li>
          ))}
        </>
      ))}
    </ol>
  );
}

/** The item that is pointed at, where there is no room for all; its own room is always kept. */
function PointedItem({ sheet, item }: ItemProps) {
  return (
    <p class="pointed-item" aria-hidden="true">
      {item === null
        ? <span class="hint">Tap a number to read its item and to sort by it.</span>
        : <><b>{item + 1}</b> <Name>{sheet.block.items[item]!}</Name></>}
    </p>
  );
}

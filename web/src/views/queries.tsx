// All queries of the run; by default, those with the largest SD of scores come first.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { count, plural } from "../format";
import { Choice } from "../parts/choice";
import { useKept } from "../parts/kept";
import { LongList } from "../parts/long_list";
import { Opened } from "../parts/opened";
import { Left, WordsBox } from "../parts/words_box";
import { Heading } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import { DetailNote } from "./detail_note";
import { ORDERS, categories, isWanted, type Order } from "./orders";
import { QueryLine, QueryLineHead } from "./query_line";

const SORTS: [Order, string][] = [
  ["spread", "largest SD of scores"],
  ["mean", "lowest mean score"],
  ["benchmark", "benchmark order"],
  ["missing", "most missing scores"],
];

export function QueriesView() {
  const report = useReport();
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Queries" />
      <Opened name="queries" open={() => report.queries()}>
        {(queries) => <QueryList queries={queries} />}
      </Opened>
    </>
  );
}

function QueryList({ queries }: { queries: Queries }) {
  const [order, setOrder] = useKept<Order>("queries order", "spread");
  const [category, setCategory] = useKept("queries category", "");
  const [words, setWords] = useKept("queries words", "");
  const offered = useMemo(() => categories(queries), [queries]);
  const sorted = useMemo(() => ORDERS[order](queries), [queries, order]);
  const kept = useMemo(
    () => sorted.filter(isWanted(queries, category, words)),
    [sorted, category, words],
  );
  const widest = useMemo(() => most(queries.table.spread), [queries]);
  return (
    <>
      <p class="view-lead">
        {plural(queries.count, "query", "queries")} with{" "}
        {count(queries.table.items.reduce((sum, items) => sum + items, 0))} checklist items.
        SD is the standard deviation of the candidates&#8217; scores on a query.
      </p>
      <DetailNote queries={queries} />
      <div class="filter">
        <WordsBox placeholder="id, category or text of a query" value={words} onWords={setWords} />
        <Choice label="Sort by" value={order} options={SORTS} onChoice={setOrder} />
        {offered.length > 1 && (
          <Choice label="Category" value={category} options={offered} onChoice={setCategory} />
        )}
        <Left shown={kept.length} of={queries.count} />
      </div>
      <QueryLineHead />
      <LongList entries={kept} rowHeight={41} name="Queries">
        {(place) => <QueryLine queries={queries} place={place} widest={widest} />}
      </LongList>
      {kept.length === 0 && <p class="hint">No query matches.</p>}
    </>
  );
}

const most = (values: (number | null)[]) =>
  values.reduce<number>((highest, value) => Math.max(highest, value ?? 0), 0);

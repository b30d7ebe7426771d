// The list of queries in the reader: search, filters, order.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { useReport } from "../context";
import { plural, two } from "../format";
import { Choice, type Options } from "../parts/choice";
import { LongList } from "../parts/long_list";
import { ScoreBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import { Left } from "../parts/words_box";
import { setFields, to, withFields } from "../routes";
import { DetailNote, useDetailWords } from "./detail_note";
import { gapWords } from "./gaps";
import { gapOn, type Only, type Reading, type Sort, type Tables } from "./reading";
import { sliceOptions } from "../slices";

export interface ListProps {
  tables: Tables;
  reading: Reading;
  order: number[];
  /** The open query. */
  place: number | undefined;
}

export function QueryPane({ tables, reading, order, place }: ListProps) {
  const { queries } = tables;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    // Keep the open query in sight when the keys move it.
    const line = box.current?.querySelector<HTMLElement>('[aria-current="true"]');
    const list = box.current?.querySelector<HTMLElement>(".query-list");
    if (!line || !list) return;
    const [seen, whole] = [line.getBoundingClientRect(), list.getBoundingClientRect()];
    if (seen.top < whole.top) list.scrollTop -= whole.top - seen.top;
    else if (seen.bottom > whole.bottom) list.scrollTop += seen.bottom - whole.bottom;
  }, [place]);
  return (
    <nav ref={box} class="query-pane" aria-label="Queries">
      <QueryFilter tables={tables} reading={reading} />
      <p class="hint">
        {plural(queries.count, "query", "queries")}{" "}
        <Left shown={order.length} of={queries.count} />
      </p>
      <NumbersNote reading={reading} />
      <DetailNote queries={queries} />
      <div class="query-list">
        <LongList entries={order} rowHeight={69} name="Queries">
          {(each) => <QueryLine {...{ tables, reading }} place={each} isOpen={each === place} />}
        </LongList>
        {order.length === 0 && <p class="hint">No query matches.</p>}
      </div>
    </nav>
  );
}

/** Which numbers the lines show. */
function NumbersNote({ reading }: { reading: Reading }) {
  const { head } = useReport();
  const [a, b] = reading.candidates.map((place) => head.candidates[place]!.name);
  if (a === undefined || b === undefined) return <p class="hint">Number: mean score.</p>;
  return <p class="hint">Numbers: mean score, and <Name>{a}</Name> minus <Name>{b}</Name>.</p>;
}

function QueryFilter({ tables, reading }: { tables: Tables; reading: Reading }) {
  const { head } = useReport();
  const { queries, labels } = tables;
  const slices = useMemo(() => sliceOptions(queries), [queries]);
  const [a, b] = reading.candidates.map((place) => head.candidates[place]!.name);
  const sorts: Options<Sort> = [
    ["spread", "largest SD of scores"],
    ...(b === undefined ? [] : [["gap", "largest difference of the two"] as const]),
    ...(a === undefined ? [] : [["low", `lowest score of ${a}`] as const]),
    ["mean", "lowest mean score"],
    ...(labels ? [["label", "score furthest from its label"] as const] : []),
    ["missing", "most missing scores"],
    ["benchmark", "benchmark order"],
  ];
  const only: Options<Only> = [
    ["", "All"],
    ...(b === undefined ? [] : [["first", `${a} scores higher`], ["second", `${b} scores higher`]] as const),
    ...(labels ? [["labeled", "labeled"] as const] : []),
    ["missing", "scores missing"],
  ];
  return (
    <div class="filter query-filter">
      <label>
        <span class="spoken">Filter</span>
        <input
          type="search"
          placeholder="Filter queries"
          value={reading.words}
          onInput={(event) => setFields({ words: event.currentTarget.value }, true)}
        />
      </label>
      {slices.length > 1 && (
        <Choice label="Slice" value={reading.slice} options={slices} onChoice={(slice) => setFields({ in: slice }, true)} />
      )}
      <Choice label="Sort by" value={reading.sort} options={sorts} onChoice={(sort) => setFields({ sort: sort === "spread" ? "" : sort }, true)} />
      <Choice label="Where" value={reading.only} options={only} onChoice={(each) => setFields({ only: each }, true)} />
    </div>
  );
}

interface LineProps {
  tables: Tables;
  reading: Reading;
  place: number;
  isOpen: boolean;
}

function QueryLine({ tables, reading, place, isOpen }: LineProps) {
  const { head } = useReport();
  const { queries } = tables;
  const { table } = queries;
  const leftOut = useDetailWords()(queries, place);
  const mean = table.mean[place] ?? null;
  const gap = gapOn(tables, place, reading.candidates);
  const missing = table.missing[place]!;
  const category = queries.category(place);
  return (
    <a
      class="query-line"
      href={withFields(location.hash.startsWith("#/read") ? location.hash : to.read(), { q: table.id[place]! })}
      aria-current={isOpen ? "true" : undefined}
    >
      <span class="snippet" dir="auto">{table.snippet[place] || table.id[place]}</span>
      <span class="query-meta">
        <span title="Mean score of all candidates">
          <span class="spoken">Mean score </span>{mean === null ? "no score" : two(mean)} <ScoreBar score={mean} scale={head.scale} />
        </span>
        {gap !== null && (
          <span title="Score of the first response minus the second">
            <span class="spoken">difference of the two </span>{gapWords(gap)}
          </span>
        )}
        {missing > 0 && <span class="loud">{missing} missing</span>}
        {leftOut && <Tag mood="fair">{leftOut}</Tag>}
        <span class="query-id"><Name>{table.id[place]!}</Name></span>
        {category !== null && <span class="query-category"><Name>{category}</Name></span>}
      </span>
    </a>
  );
}

// All checklist items of the run.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { Choice, type Options } from "../parts/choice";
import { fileName, saveCsv } from "../parts/download";
import { useKept } from "../parts/kept";
import { LongList } from "../parts/long_list";
import { Opened } from "../parts/opened";
import { Heading } from "../parts/words";
import { Left, WordsBox } from "../parts/words_box";
import type { Queries } from "../report";
import { to } from "../routes";
import { NotHere } from "./detail_note";
import { ItemLine, ItemLineHead } from "./item_line";
import { groupsOf, itemRows, sortedRows, wantedRows, type ItemRow, type ItemSort } from "./item_rows";
import { itemTable } from "./item_table";
import { ItemVerdicts } from "./item_verdicts";
import { sliceOptions } from "../slices";

const SORTS: Options<ItemSort> = [
  ["influence", "largest share of score differences"],
  ["spread", "largest SD"],
  ["even", "smallest SD"],
  ["low", "lowest mean"],
  ["high", "highest mean"],
  ["correlation", "highest correlation with score"],
  ["against", "lowest correlation with score"],
  ["benchmark", "benchmark order"],
];

export function ItemsView() {
  const report = useReport();
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Checklist items" />
      <Opened
        name="items"
        open={async () => {
          const [queries, block] = await Promise.all([report.queries(), report.items()]);
          return { queries, rows: itemRows(queries, block) };
        }}
        absent={<NotHere what="The items' figures are" />}
      >
        {({ queries, rows }) => <ItemList queries={queries} rows={rows} />}
      </Opened>
    </>
  );
}

function ItemList({ queries, rows }: { queries: Queries; rows: ItemRow[] }) {
  const { head } = useReport();
  const [verdict, setVerdict] = useKept("verdict", "");
  const [slice, setSlice] = useKept("in", "");
  const [group, setGroup] = useKept("group", "");
  const [words, setWords] = useKept("words", "");
  const [sort, setSort] = useKept<ItemSort>("sort", "influence", SORTS);
  const offered = useMemo(() => sliceOptions(queries), [queries]);
  const groups = useMemo(() => groupsOf(rows), [rows]);
  const sorted = useMemo(() => sortedRows(rows, sort), [rows, sort]);
  const kept = useMemo(
    () => wantedRows(sorted, queries, { verdict, slice, group, words }),
    [sorted, verdict, slice, group, words],
  );
  const save = () => saveCsv(fileName(head.run, "items"), itemTable(queries, kept));
  return (
    <>
      <ItemVerdicts queries={queries} rows={rows} verdict={verdict} onVerdict={setVerdict} />
      <div class="filter">
        <WordsBox placeholder="text of the item, or its query" value={words} onWords={setWords} />
        <Choice label="Sort by" value={sort} options={SORTS} onChoice={setSort} />
        {offered.length > 1 && (
          <Choice label="Slice" value={slice} options={offered} onChoice={setSlice} />
        )}
        {groups.length > 2 && (
          <Choice label="Group" value={group} options={groups} onChoice={setGroup} />
        )}
        <button type="button" onClick={save} disabled={kept.length === 0}>CSV</button>
        <Left shown={kept.length} of={rows.length} />
      </div>
      <ItemLineHead />
      <LongList entries={kept} rowHeight={66} name="Items">
        {(row) => <ItemLine queries={queries} row={row} />}
      </LongList>
      {kept.length === 0 && <p class="hint">No item matches.</p>}
    </>
  );
}

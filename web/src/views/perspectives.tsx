// The list of the evaluator's perspectives.

import { useMemo } from "preact/hooks";
import type { EvaluatorBlock } from "../contract";
import { useReport } from "../context";
import { Choice, type Options } from "../parts/choice";
import { fileName, saveCsv } from "../parts/download";
import { FoldList } from "../parts/fold_list";
import { useKept } from "../parts/kept";
import { Section } from "../parts/words";
import { Left, WordsBox } from "../parts/words_box";
import { PerspectiveInside, PerspectiveLine, PerspectiveLineHead } from "./perspective_line";
import {
  familyOf, KINDS, originsOf, perspectiveTable, SORTS, sortedPerspectives, wantedPerspectives,
  type PerspectiveSort,
} from "./perspective_rows";

const ABOUT: Options<string> = [["", "All"], ["response", KINDS.response], ["query", KINDS.query]];

export function PerspectiveList({ block }: { block: EvaluatorBlock }) {
  const { head } = useReport();
  const rows = block.perspectives;
  const [kind, setKind] = useKept("kind", "");
  const [origin, setOrigin] = useKept("origin", "");
  const [words, setWords] = useKept("words", "");
  const [sort, setSort] = useKept<PerspectiveSort>("sort", "importance", SORTS);
  const family = useMemo(() => familyOf(block), [block]);
  const origins = useMemo(() => originsOf(rows), [rows]);
  const both = rows.some((row) => row.kind === "query");
  const kept = useMemo(
    () => wantedPerspectives(sortedPerspectives(rows, sort), { kind, origin, words }),
    [rows, sort, kind, origin, words],
  );
  const most = Math.max(...rows.map(({ importance }) => importance ?? 0), 0.001);
  const save = () => saveCsv(fileName(head.run, "perspectives"), perspectiveTable(kept));
  return (
    <Section
      title="Perspectives"
      lead="The questions that the judge answered. Importance is the share among perspectives of the same kind; stability is the share of folds that kept the perspective. Open one to see its origin."
    >
      <div class="filter">
        <WordsBox placeholder="text of the perspective" value={words} onWords={setWords} />
        <Choice label="Sort by" value={sort} options={SORTS} onChoice={setSort} />
        {both && <Choice label="About" value={kind} options={ABOUT} onChoice={setKind} />}
        {origins.length > 2 && <Choice label="Origin" value={origin} options={origins} onChoice={setOrigin} />}
        <button type="button" onClick={save} disabled={kept.length === 0}>CSV</button>
        <Left shown={kept.length} of={rows.length} />
      </div>
      <PerspectiveLineHead />
      <FoldList
        entries={kept}
        keyOf={({ id }) => id}
        rowHeight={66}
        name="Perspectives"
        line={(row) => <PerspectiveLine row={row} most={most} />}
        inside={(row) => <PerspectiveInside block={block} row={row} family={family} />}
      />
      {kept.length === 0 && <p class="hint">No perspective matches.</p>}
    </Section>
  );
}

// The queries with the largest differences between two candidates.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { plural } from "../format";
import { Choice, type Options } from "../parts/choice";
import { FoldList } from "../parts/fold_list";
import { useKept } from "../parts/kept";
import { Opened } from "../parts/opened";
import { Section } from "../parts/words";
import { Left, WordsBox } from "../parts/words_box";
import type { Queries, Scores } from "../report";
import { DecidingLine, type Difference } from "./deciding_line";
import type { Names } from "./names";
import { categories, isWanted } from "./orders";
import { PairedResponses } from "./paired_responses";

type Side = "both" | "first" | "second";

export function Deciding({ names }: { names: Names }) {
  const report = useReport();
  const open = () => Promise.all([report.queries(), report.scores()]);
  return (
    <Section
      title="Deciding queries"
      lead="Largest differences first. Open a query to read both responses side by side."
    >
      <Opened name="scores" open={open}>
        {([queries, scores]) => <Differences {...{ queries, scores, names }} />}
      </Opened>
    </Section>
  );
}

interface DifferencesProps {
  queries: Queries;
  scores: Scores;
  names: Names;
}

function Differences({ queries, scores, names }: DifferencesProps) {
  const { places } = useReport();
  const [side, setSide] = useKept<Side>("compare side", "both");
  const [category, setCategory] = useKept("compare category", "");
  const [words, setWords] = useKept("compare words", "");
  const [first, second] = names.map((name) => places.get(name)!) as [number, number];
  const all = useMemo(() => differences(queries, scores, first, second), [queries, scores]);
  const offered = useMemo(() => categories(queries), [queries]);
  const kept = useMemo(() => {
    const wanted = isWanted(queries, category, words);
    return all.filter(({ query, gap }) => wanted(query) && isOn(side, gap));
  }, [all, side, category, words]);
  const sides: Options<Side> = [
    ["both", "either is better"],
    ["first", `${names[0]} is better`],
    ["second", `${names[1]} is better`],
  ];
  const most = Math.abs(all[0]?.gap ?? 0);
  return (
    <>
      <div class="filter">
        <WordsBox placeholder="id, category or text of a query" value={words} onWords={setWords} />
        <Choice label="Where" value={side} options={sides} onChoice={setSide} />
        {offered.length > 1 && (
          <Choice label="Category" value={category} options={offered} onChoice={setCategory} />
        )}
        <Left shown={kept.length} of={all.length} />
      </div>
      <Unpaired queries={queries} pairs={all.length} />
      <FoldList
        entries={kept}
        keyOf={({ query }) => query}
        rowHeight={41}
        name="Queries"
        line={(difference) => <DecidingLine {...{ queries, difference, most }} />}
        inside={({ query }) => <PairedResponses {...{ query, names }} />}
      />
      {kept.length === 0 && <p class="hint">No query matches.</p>}
    </>
  );
}

const isOn = (side: Side, gap: number) =>
  side === "both" || (side === "first" ? gap > 0 : gap < 0);

function differences(queries: Queries, scores: Scores, first: number, second: number) {
  const found: Difference[] = [];
  for (let query = 0; query < queries.count; query++) {
    const a = scores.at(query, first);
    const b = scores.at(query, second);
    if (typeof a === "number" && typeof b === "number")
      found.push({ query, first: a, second: b, gap: a - b });
  }
  return found.sort((a, b) => Math.abs(b.gap) - Math.abs(a.gap) || a.query - b.query);
}

/** The number of queries left out, with the reason. */
function Unpaired({ queries, pairs }: { queries: Queries; pairs: number }) {
  const absent = queries.table.detail.filter((detail) => detail === 0).length;
  const without = queries.count - absent - pairs;
  return (
    <>
      {without > 0 && (
        <p class="hint">
          {plural(without, "query is", "queries are")} left out because one of the two has no score.
        </p>
      )}
      {absent > 0 && (
        <p class="hint">This file does not have the scores of {plural(absent, "query", "queries")}.</p>
      )}
    </>
  );
}

// All responses of one candidate.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { two } from "../format";
import { Choice, type Options } from "../parts/choice";
import { Strip } from "../parts/heat";
import { useKept } from "../parts/kept";
import { LongList } from "../parts/long_list";
import { GapBar, ScoreBar } from "../parts/score_bar";
import { Name, Section, Tag } from "../parts/words";
import { Left, WordsBox } from "../parts/words_box";
import type { Answers, Queries } from "../report";
import { to } from "../routes";
import type { CandidateRow } from "./candidate_rows";
import { gapWords } from "./gaps";
import { isWanted, sliceOptions } from "../slices";

type Sort = "score" | "behind" | "ahead" | "benchmark";

const SORTS: Options<Sort> = [
  ["score", "lowest score"],
  ["behind", "furthest below the others"],
  ["ahead", "furthest above the others"],
  ["benchmark", "benchmark order"],
];

const KEYS: Record<Sort, (row: CandidateRow) => number> = {
  score: (row) => row.score,
  behind: (row) => row.gap ?? Infinity,
  ahead: (row) => -(row.gap ?? -Infinity),
  benchmark: (row) => row.query,
};

interface LeadProps {
  queries: Queries;
  rows: CandidateRow[];
  candidate: number;
}

/** `answers` is null if the page has none. */
type ListProps = LeadProps & { answers: Answers | null };

export function CandidateList({ queries, rows, candidate, answers }: ListProps) {
  const [sort, setSort] = useKept<Sort>("sort", "score", SORTS);
  const [slice, setSlice] = useKept("in", "");
  const [words, setWords] = useKept("words", "");
  const offered = useMemo(() => sliceOptions(queries), [queries]);
  const kept = useMemo(() => {
    const wanted = isWanted(queries, slice, words);
    const key = KEYS[sort];
    return rows.filter((row) => wanted(row.query)).sort((a, b) => Math.sign(key(a) - key(b)));
  }, [rows, sort, slice, words]);
  const most = useMemo(() => rows.reduce((far, { gap }) => Math.max(far, Math.abs(gap ?? 0)), 0), [rows]);
  return (
    <Section title="Responses" lead={<Lead queries={queries} rows={rows} candidate={candidate} />}>
      <div class="filter">
        <WordsBox placeholder="id, category or text of a query" value={words} onWords={setWords} />
        <Choice label="Sort by" value={sort} options={SORTS} onChoice={setSort} />
        {offered.length > 1 && (
          <Choice label="Slice" value={slice} options={offered} onChoice={setSlice} />
        )}
        <Left shown={kept.length} of={rows.length} />
      </div>
      <LongList entries={kept} rowHeight={41} name="Responses">
        {(row) => <Line {...{ queries, row, candidate, answers, most }} />}
      </LongList>
    </Section>
  );
}

function Lead({ queries, rows, candidate }: LeadProps) {
  const { queries: scored } = useReport().head.candidates[candidate]!;
  const elsewhere = scored - rows.length;
  return (
    <>
      Differences are relative to the mean score of the other candidates on the same query.
      {elsewhere > 0 && <> {elsewhere} of its {scored} scores are not in this file.</>}
      {rows.length === 0 && queries.count > 0 && <> This file has none of its scores.</>}
    </>
  );
}

interface LineProps {
  queries: Queries;
  row: CandidateRow;
  candidate: number;
  answers: Answers | null;
  most: number;
}

function Line({ queries, row, candidate, answers, most }: LineProps) {
  const { head } = useReport();
  const { id, snippet } = queries.table;
  const category = queries.category(row.query);
  const query = id[row.query]!;
  return (
    <a class="line candidate-line" href={to.response(head.candidates[candidate]!.name, query)}>
      <span class="measure">
        <span class="phone-label">Score</span> <b>{two(row.score)}</b>
        <ScoreBar score={row.score} scale={head.scale} />
      </span>
      <span class="measure">
        <span class="spoken">, difference from the others </span>
        {row.gap !== null && <><b>{gapWords(row.gap)}</b><GapBar gap={row.gap} most={most} /></>}
      </span>
      <span class="what">
        <b><Name>{query}</Name></b>
        {category !== null && <Tag><Name>{category}</Name></Tag>}
        <span class="snippet" dir="auto">{snippet[row.query]}</span>
      </span>
      <Strip answers={answers?.of(row.query, candidate) ?? []} />
    </a>
  );
}

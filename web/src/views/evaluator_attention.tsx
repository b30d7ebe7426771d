// The attention of each expert, one column per expert.

import { useMemo, useState } from "preact/hooks";
import type { DescribedPerspective, EvaluatorBlock } from "../contract";
import { useReport } from "../context";
import { count, share } from "../format";
import { Choice, type Options } from "../parts/choice";
import { fileName, saveCsv, type Table } from "../parts/download";
import { useKept } from "../parts/kept";

const SHOWN = 12;

interface Row {
  perspective: DescribedPerspective;
  /** One per expert. */
  shares: number[];
}

export function Attention({ block }: { block: EvaluatorBlock }) {
  const { head } = useReport();
  const [sort, setSort] = useKept("attention", "most", sortsOf(block));
  const [all, setAll] = useState(false);
  const rows = useMemo(() => rowsOf(block), [block]);
  const sorted = useMemo(() => [...rows].sort((a, b) => keyOf(sort)(b) - keyOf(sort)(a)), [rows, sort]);
  const most = Math.max(...rows.flatMap(({ shares }) => shares), 0.001);
  const shown = all ? sorted : sorted.slice(0, SHOWN);
  if (!rows.length) return null;
  return (
    <>
      <div class="filter attention-head">
        <h3>Attention {block.experts.length > 1 ? "of each expert" : "of the expert"}</h3>
        {block.experts.length > 1 && (
          <Choice label="Sort by" value={sort} options={sortsOf(block)} onChoice={setSort} />
        )}
        <button type="button" onClick={() => saveCsv(fileName(head.run, "attention"), table(block, rows))}>CSV</button>
      </div>
      <div class="scroll">
        <table class="attention">
          <caption class="spoken">Share of attention by perspective and expert</caption>
          <thead>
            <tr>
              <th scope="col">Perspective</th>
              {block.experts.map(({ index }) => <th scope="col" key={index}>Expert {index + 1}</th>)}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => <Line key={row.perspective.id} row={row} most={most} />)}
          </tbody>
        </table>
      </div>
      {rows.length > SHOWN && (
        <button type="button" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? `Show the top ${SHOWN}` : `Show all ${count(rows.length)}`}
        </button>
      )}
      <p class="hint">The shares of an expert add up to 100%; a stronger color means more. Attention is how much an answer moves the verdicts, not in which direction.</p>
    </>
  );
}

function Line({ row: { perspective, shares }, most }: { row: Row; most: number }) {
  return (
    <tr>
      <th scope="row" dir="auto">{perspective.text}</th>
      {shares.map((value, expert) => (
        <td key={expert} class="heat yes" style={{ "--strength": `${Math.round((100 * value) / most)}%` }}>
          <span class="phone-label">Expert {expert + 1}</span> {share(value)}
        </td>
      ))}
    </tr>
  );
}

function rowsOf({ perspectives, experts }: EvaluatorBlock): Row[] {
  return perspectives
    .filter(({ kind }) => kind === "response")
    .map((perspective, place) => ({ perspective, shares: experts.map(({ attention }) => attention[place] ?? 0) }));
}

const sortsOf = ({ experts }: EvaluatorBlock): Options<string> => [
  ["most", "highest attention"],
  ["apart", "largest difference between experts"],
  ...experts.map(({ index }) => [String(index), `expert ${index + 1}`] as const),
];

function keyOf(sort: string): (row: Row) => number {
  if (sort === "most") return ({ shares }) => Math.max(...shares);
  if (sort === "apart") return ({ shares }) => Math.max(...shares) - Math.min(...shares);
  return ({ shares }) => shares[Number(sort)] ?? 0;
}

const table = ({ experts }: EvaluatorBlock, rows: Row[]): Table => ({
  columns: ["id", "perspective", ...experts.map(({ index }) => `expert ${index + 1}`)],
  rows: rows.map(({ perspective, shares }) => [perspective.id, perspective.text, ...shares]),
});

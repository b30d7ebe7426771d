// Number of items per verdict, with meaning and advice; a click filters the list.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { capital, count, plural, share } from "../format";
import type { Queries } from "../report";
import type { ItemRow } from "./item_rows";
import { adviceOn, undecided, VERDICTS, VerdictTag, type Verdict } from "./verdicts";

interface VerdictsProps {
  queries: Queries;
  rows: ItemRow[];
  verdict: string;
  onVerdict: (verdict: string) => void;
}

export function ItemVerdicts({ queries, rows, verdict, onVerdict }: VerdictsProps) {
  const without = queries.table.detail.filter((detail) => detail < 2).length;
  return (
    <>
      <p class="view-lead">
        {plural(rows.length, "item", "items")} of{" "}
        {plural(queries.count - without, "checklist", "checklists")}. An item is useful if
        its answers differ between candidates.
        {without > 0 && <> This file does not have the items of {plural(without, "query", "queries")}.</>}
      </p>
      <div class="verdicts">
        {(Object.keys(VERDICTS) as Verdict[]).map((kind) => (
          <Kind
            key={kind}
            kind={kind}
            rows={rows}
            isShown={kind === verdict}
            onShown={(isShown) => onVerdict(isShown ? kind : "")}
          />
        ))}
      </div>
    </>
  );
}

interface KindProps {
  kind: Verdict;
  rows: ItemRow[];
  isShown: boolean;
  onShown: (isShown: boolean) => void;
}

function Kind({ kind, rows, isShown, onShown }: KindProps) {
  const candidates = useReport().head.candidates.length;
  const members = useMemo(() => rows.filter(({ figure }) => figure.verdict === kind), [rows]);
  const checks = members.filter(({ figure }) => figure.check).length;
  const open = members.length ? "" : undecided(kind, candidates);
  return (
    <div class="kind">
      <p>
        <b class="amount">{open ? "\u2013" : count(members.length)}</b> <VerdictTag verdict={kind} />{" "}
        {rows.length > 0 && !open && <small>{share(members.length / rows.length)}</small>}
      </p>
      <p>{VERDICTS[kind]}</p>
      {kind === "dead" && <Reasons rows={members} />}
      <p class="hint">{open || adviceOn(kind, members.length, checks)}</p>
      {members.length > 0 && (
        <button type="button" aria-pressed={isShown} onClick={() => onShown(!isShown)}>
          {isShown ? "Show all items" : `Show only ${kind} items`}
        </button>
      )}
    </div>
  );
}

function Reasons({ rows }: { rows: ItemRow[] }) {
  const reasons = new Map<string, number>();
  for (const { figure } of rows) reasons.set(figure.why, (reasons.get(figure.why) ?? 0) + 1);
  const most = [...reasons].sort((a, b) => b[1] - a[1]).slice(0, 4);
  if (!most.length) return null;
  const words = most.map(([why, number]) => `${why || "no reason given"}: ${count(number)}`);
  return <p>{capital(words.join(", "))}.</p>;
}

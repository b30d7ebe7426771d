// Notes on data that is not in this file.

import { useReport } from "../context";
import { count } from "../format";
import type { Queries } from "../report";

const LEVELS = ["figures only", "scores only", "no texts", ""] as const;

/** Note next to a query; "" if the page has all of it or can fetch it. */
export function useDetailWords(): (queries: Queries, place: number) => string {
  const isComplete = useReport().head.blocks !== "embedded";
  return (queries, place) => (isComplete ? "" : LEVELS[queries.table.detail[place]!]);
}

/** Note above the list: how many queries are complete, and how to see the others. */
export function DetailNote({ queries }: { queries: Queries }) {
  const { head } = useReport();
  const whole = queries.table.detail.filter((detail) => detail === 3).length;
  if (head.blocks !== "embedded" || whole === queries.count) return null;
  return (
    <p class="hint">
      To stay small, this file has full detail for {count(whole)} of {count(queries.count)} queries.
      The others have figures, scores or answers, but no response texts. <ViewAll />
    </p>
  );
}

export const ViewAll = () => <>Run <code>rocketeval view</code> to see everything.</>;

/** Placeholder for data that is not in this file. */
export const NotHere = ({ what }: { what: string }) => (
  <p class="notice">{what} not in this file, to keep it small. <ViewAll /></p>
);

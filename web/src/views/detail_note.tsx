// What a file that cannot hold everything says about what it leaves out.

import { useReport } from "../context";
import { count } from "../format";
import type { Queries } from "../report";

const SAID = ["figures only", "scores only", "no texts", ""] as const;

/** Beside a query's line; "" when all of it is there, or can be fetched. */
export function useDetailWords(): (queries: Queries, place: number) => string {
  const isServed = useReport().head.blocks === "served";
  return (queries, place) => (isServed ? "" : SAID[queries.table.detail[place]!]);
}

/** Above the list of queries: how many are whole, and where the others are. */
export function DetailNote({ queries }: { queries: Queries }) {
  const { head } = useReport();
  const whole = queries.table.detail.filter((detail) => detail === 3).length;
  if (head.blocks === "served" || whole === queries.count) return null;
  return (
    <p class="hint">
      To stay small, this file holds all of {count(whole)} of {count(queries.count)} queries; of the
      others it holds the figures that their lines show, or their scores and answers without the
      responses. <ViewAll />
    </p>
  );
}

export const ViewAll = () => <><code>rocketeval view</code> opens them all.</>;

/** In place of what is not here. */
export const NotHere = ({ what }: { what: string }) => (
  <p class="notice">{what} not in this file, to keep it small. <ViewAll /></p>
);

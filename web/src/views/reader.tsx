// The reader: a list of queries, one query with two or more responses, and its checklist.

import { useEffect, useMemo } from "preact/hooks";
import { useReport } from "../context";
import { useShortcuts } from "../parts/shortcuts";
import { Opened } from "../parts/opened";
import { setFields, to, useHash } from "../routes";
import { NotHere } from "./detail_note";
import { ReaderChecklist } from "./reader_checklist";
import { QueryPane } from "./reader_list";
import { QueryFacts, QueryText, Responses } from "./reader_responses";
import { listed, openTables, readingOf, type Reading, type Tables } from "./reading";
import { openQueryResults, type QueryResults } from "./sheet";

export function ReaderView() {
  const report = useReport();
  return (
    <Opened name="reader" open={() => openTables(report)}>
      {(tables) => <Reader tables={tables} />}
    </Opened>
  );
}

function Reader({ tables }: { tables: Tables }) {
  const { places, head } = useReport();
  const hash = useHash();
  const reading = useMemo(() => readingOf(hash, places), [hash, places]);
  const order = useMemo(
    () => listed(reading, tables),
    [tables, reading.words, reading.slice, reading.sort, reading.only, reading.candidates.join()],
  );
  const isChosen = reading.query !== "";
  const place = isChosen ? tables.queries.place(reading.query) : order[0];
  useReaderKeys(reading, tables, order, place);
  useEffect(() => {
    document.body.classList.add("wide");
    return () => document.body.classList.remove("wide");
  }, []);
  return (
    <div class={`reader ${isChosen ? "chosen" : "unchosen"}`}>
      <QueryPane {...{ tables, reading, order, place }} />
      {place === undefined ? (
        <div class="reader-query">
          <h1 tabIndex={-1}>{isChosen ? "Not in this report" : "Read"}</h1>
          <p>{isChosen ? "There is no such query in this report." : "No query matches."}</p>
        </div>
      ) : (
        <OpenQuery key={head.run} {...{ tables, reading, order, place }} />
      )}
    </div>
  );
}

export interface OpenProps {
  tables: Tables;
  reading: Reading;
  order: number[];
  place: number;
}

function OpenQuery(props: OpenProps) {
  const report = useReport();
  const { tables, place } = props;
  return (
    <>
      <div class="reader-query">
        <a class="back-to-list" href={to.read({ ...listFields(props.reading) })}>All queries</a>
        <QueryFacts {...props} />
        <Opened
          name={`query ${place}`}
          open={() => openQueryResults(report, place)}
          absent={
            <>
              <p class="prose" dir="auto">{tables.queries.table.snippet[place]}</p>
              <NotHere what="The rest of the query, its checklist, answers and responses are" />
            </>
          }
        >
          {(results) => <OpenResults {...props} results={results} />}
        </Opened>
      </div>
    </>
  );
}

const listFields = ({ words, slice, sort, only }: Reading) => ({
  words, in: slice, sort: sort === "spread" ? "" : sort, only,
});

function OpenResults(props: OpenProps & { results: QueryResults }) {
  return (
    <div class="reader-panes">
      <div class="reader-texts">
        <QueryText results={props.results} />
        <Responses {...props} />
      </div>
      <ReaderChecklist results={props.results} candidates={props.reading.candidates} />
    </div>
  );
}

/** j and k step through the queries, h and l through the candidates of the last response. */
function useReaderKeys(reading: Reading, tables: Tables, order: number[], place: number | undefined) {
  const { head } = useReport();
  const toQuery = (step: number) => {
    const at = place === undefined ? -1 : order.indexOf(place);
    const next = order[at < 0 ? 0 : at + step];
    if (next !== undefined) setFields({ q: tables.queries.table.id[next]! });
  };
  const toCandidate = (step: number) => {
    const count = head.candidates.length;
    const shown = reading.candidates;
    const last = shown.at(-1);
    if (last === undefined || count <= shown.length) return;
    let next = last;
    do next = (next + step + count) % count; while (shown.slice(0, -1).includes(next));
    setFields({ c: [...shown.slice(0, -1), next].map((each) => head.candidates[each]!.name) }, true);
  };
  const look = (wanted: "raw" | "diff") => () =>
    setFields({ look: reading.look === wanted ? "" : wanted }, true);
  useShortcuts({
    j: () => toQuery(1),
    k: () => toQuery(-1),
    l: () => toCandidate(1),
    h: () => toCandidate(-1),
    r: look("raw"),
    d: look("diff"),
    "/": () => document.querySelector<HTMLInputElement>(".query-pane input")?.focus(),
  });
}

// One query: its text, checklist, answers and responses.

import type { Head } from "../contract";
import { useReport } from "../context";
import { plural, two } from "../format";
import { Clipped } from "../parts/clipped";
import { Facts } from "../parts/facts";
import { Later } from "../parts/later";
import { Opened } from "../parts/opened";
import { Stepper } from "../parts/stepper";
import { Heading, Name, Scale, Section, Tag } from "../parts/words";
import type { Queries } from "../report";
import { to } from "../routes";
import { Checklist } from "./checklist";
import { NotHere } from "./detail_note";
import { HeatMap } from "./heat_map";
import { ORDERS } from "./orders";
import { ResponseList } from "./response_list";
import { openQueryResults, type QueryResults } from "./sheet";
import { Turns } from "./turns";

export function QueryView({ id }: { id: string }) {
  const report = useReport();
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"], [to.queries(), "Queries"]]} title={id} />
      <Opened name="queries" open={() => report.queries()}>
        {(queries) => {
          const place = queries.place(id);
          if (place === undefined) return <p>There is no such query in this report.</p>;
          return <QueryAt queries={queries} place={place} />;
        }}
      </Opened>
    </>
  );
}

function QueryAt({ queries, place }: { queries: Queries; place: number }) {
  const report = useReport();
  return (
    <>
      <Facts facts={factsOf(report.head, queries, place)} />
      <Neighbors queries={queries} place={place} />
      <Opened
        name={`query ${place}`}
        open={() => openQueryResults(report, place)}
        absent={<QueryLeftOut queries={queries} place={place} />}
      >
        {(results) => <QueryDetails results={results} />}
      </Opened>
    </>
  );
}

function factsOf(head: Head, { table }: Queries, place: number) {
  const mean = table.mean[place] ?? null;
  const spread = table.spread[place] ?? null;
  const missing = table.missing[place]!;
  return [
    table.category[place] === null ? null : <Tag>category: <Name>{table.category[place]!}</Name></Tag>,
    mean === null ? "no score" : <>mean score <b>{two(mean)}</b> (<Scale head={head} />)</>,
    spread === null ? null : <span title="Standard deviation of the candidates' scores">SD of scores <b>{two(spread)}</b></span>,
    plural(table.items[place]!, "item", "items"),
    missing ? <span class="loud">{plural(missing, "score", "scores")} missing</span> : null,
  ];
}

/** Links to the previous and next query by SD of scores, the default order of the list. */
function Neighbors({ queries, place }: { queries: Queries; place: number }) {
  const order = ORDERS.spread(queries);
  const at = order.indexOf(place);
  const step = (other: number | undefined) =>
    other === undefined
      ? null
      : { href: to.query(queries.table.id[other]!), label: queries.table.id[other]! };
  const words = `Query ${at + 1} of ${order.length} (sorted by SD of scores, largest first)`;
  return <Stepper before={step(order[at - 1])} after={step(order[at + 1])} order={words} />;
}

function QueryLeftOut({ queries, place }: { queries: Queries; place: number }) {
  return (
    <Section title="Query">
      <Clipped>{queries.table.snippet[place]!}</Clipped>
      <NotHere
        what="The rest of the query, its checklist, answers and responses are"
      />
    </Section>
  );
}

function QueryDetails({ results }: { results: QueryResults }) {
  const { block } = results;
  return (
    <>
      <div class={block.reference === null ? "" : "halves"}>
        <Section title="Query">
          {block.history.length > 0 && (
            <details class="before">
              <summary>{plural(block.history.length, "earlier turn", "earlier turns")}</summary>
              <Turns turns={block.history} />
            </details>
          )}
          <Clipped>{block.text}</Clipped>
        </Section>
        {block.reference !== null && (
          <Section title="Reference"><Clipped>{block.reference}</Clipped></Section>
        )}
      </div>
      <Checklist results={results} />
      <HeatMap results={results} />
      <Later><ResponseList results={results} /></Later>
    </>
  );
}

// One response with its answers, and links to other responses to the query.

import type { Head } from "../contract";
import { useReport } from "../context";
import { two } from "../format";
import { Clipped } from "../parts/clipped";
import { Facts } from "../parts/facts";
import { Opened } from "../parts/opened";
import { Stepper } from "../parts/stepper";
import { Heading, Name, Scale, Section } from "../parts/words";
import { to } from "../routes";
import { AnswerList } from "./answer_list";
import { NotHere } from "./detail_note";
import { plainNumber } from "./gaps";
import { ordered } from "./heat_order";
import { NotFound } from "./not_found";
import { OtherResponses } from "./other_responses";
import { ResponseText } from "./response_text";
import { openQueryResults, type QueryResults } from "./sheet";
import { Turns } from "./turns";

export function ResponseView(props: { candidate: string; query: string }) {
  const report = useReport();
  if (!report.places.has(props.candidate))
    return <NotFound what={<>There is no candidate <Name>{props.candidate}</Name>.</>} />;
  return (
    <>
      <Heading
        trail={[
          [to.overview(), "Overview"],
          [to.query(props.query), props.query],
          [to.candidate(props.candidate), props.candidate],
        ]}
        title={`${props.candidate} on ${props.query}`}
      />
      <Opened name="queries" open={() => report.queries()}>
        {(queries) => {
          const place = queries.place(props.query);
          if (place === undefined) return <p>There is no such query in this report.</p>;
          return <ResponseAt name={props.candidate} place={place} />;
        }}
      </Opened>
    </>
  );
}

function ResponseAt({ name, place }: { name: string; place: number }) {
  const report = useReport();
  return (
    <Opened
      name={`query ${place}`}
      open={() => openQueryResults(report, place)}
      absent={<NotHere what="This response is" />}
    >
      {(results) => <ResponseDetails results={results} name={name} />}
    </Opened>
  );
}

function ResponseDetails({ results, name }: { results: QueryResults; name: string }) {
  const { head, places } = useReport();
  const candidate = places.get(name)!;
  return (
    <>
      <Facts facts={factsOf(head, results, candidate)} />
      <Neighbors results={results} candidate={candidate} />
      <details class="before">
        <summary>The query</summary>
        <Turns turns={[...results.history(candidate), ["query", results.block.text]]} />
        {results.block.reference !== null && <Reference text={results.block.reference} />}
      </details>
      <div class="halves">
        <Section title="Response"><ResponseText results={results} candidate={candidate} /></Section>
        <Section title="Checklist" lead={head.answers_are}>
          <AnswerList results={results} candidate={candidate} />
        </Section>
      </div>
      <OtherResponses results={results} candidate={candidate} />
    </>
  );
}

const Reference = ({ text }: { text: string }) => (
  <><p><b>Reference</b></p><Clipped>{text}</Clipped></>
);

function factsOf(head: Head, results: QueryResults, candidate: number) {
  const score = results.scores[candidate] ?? null;
  const known = results.scores.filter((each): each is number => each !== null);
  const mean = known.reduce((sum, each) => sum + each, 0) / known.length;
  const label = results.label(candidate);
  return [
    score === null ? <span class="loud">no score</span> : <>score <b>{two(score)}</b> (<Scale head={head} />)</>,
    known.length ? <>mean of all candidates {two(mean)}</> : null,
    label === undefined ? null : <>label <b>{plainNumber(label)}</b></>,
  ];
}

/** Links to the next better and the next worse response to the query. */
function Neighbors({ results, candidate }: { results: QueryResults; candidate: number }) {
  const { candidates } = useReport().head;
  const order = ordered(results, { by: "score", down: true });
  const at = order.indexOf(candidate);
  const step = (other: number | undefined) => {
    if (other === undefined) return null;
    const { name } = candidates[other]!;
    return { href: to.response(name, results.id), label: name };
  };
  const words = `Response ${at + 1} of ${order.length} by score on this query`;
  return <Stepper before={step(order[at - 1])} after={step(order[at + 1])} order={words} />;
}

// One candidate: its rank, where it loses points, and all its responses.

import type { Head } from "../contract";
import { useReport } from "../context";
import { figure, plural, two } from "../format";
import { Opened } from "../parts/opened";
import { Stepper } from "../parts/stepper";
import { Heading, Name, Section } from "../parts/words";
import type { Queries, Report } from "../report";
import { to } from "../routes";
import { nullIfMissing } from "../source";
import { CandidateSlices } from "./candidate_slices";
import { CandidateGroups } from "./candidate_groups";
import { CandidateList } from "./candidate_list";
import { candidateRows, unscored } from "./candidate_rows";
import { plainNumber } from "./gaps";
import { Explanation } from "./explanation";
import { NotFound } from "./not_found";

export function CandidateView({ name }: { name: string }) {
  const report = useReport();
  const candidate = report.places.get(name);
  if (candidate === undefined)
    return <NotFound what={<>There is no candidate <Name>{name}</Name>.</>} />;
  return (
    <>
      <Heading
        trail={[[to.overview(), "Overview"]]}
        title={name}
        facts={factsOf(report.head, candidate)}
      />
      <Neighbors candidate={candidate} />
      <Opened name={`scores of ${name}`} open={() => open(report, candidate)}>
        {(parts) => <CandidateParts {...parts} />}
      </Opened>
    </>
  );
}

type Parts = Awaited<ReturnType<typeof open>>;

function CandidateParts({ queries, rows, answers, without, candidate }: Parts) {
  const { name } = useReport().head.candidates[candidate]!;
  return (
    <>
      <Explanation queries={queries} candidate={candidate} />
      <CandidateGroups candidate={candidate} />
      <CandidateSlices {...{ queries, rows, candidate }} />
      <CandidateList {...{ queries, rows, answers, candidate }} />
      <Unscored queries={queries} name={name} places={without} />
    </>
  );
}

async function open(report: Report, candidate: number) {
  const answers = await report.answers().catch(nullIfMissing);
  const [queries, scores] = await Promise.all([report.queries(), report.scores()]);
  const rows = candidateRows(queries, scores, candidate, report.head.candidates.length);
  const without = unscored(queries, scores, candidate);
  return { queries, rows, answers, without, candidate };
}

function factsOf(head: Head, candidate: number) {
  const { rank, rank_low, rank_high, ...of } = head.candidates[candidate]!;
  const reach = rank_low === rank_high ? "" : ` (${rank_low}\u2013${rank_high})`;
  return [
    rank === null ? <span class="loud">not ranked</span> : <>rank <b>{rank}</b>{reach}</>,
    of.rating === null ? null : <>rating <b>{figure(of.rating, "rating")}</b></>,
    of.score === null ? null : <>mean score <b>{figure(of.score, "score")}</b></>,
    of.label === null ? null : <>mean label <b>{two(of.label)}</b></>,
    of.reference === null ? null : <>reference rating <b>{plainNumber(of.reference)}</b></>,
    plural(of.queries, "query", "queries"),
    of.missing === 0
      ? null
      : <span class="loud">{plural(of.missing, "score", "scores")} missing</span>,
  ];
}

const MOST = 200;

/** Links to responses without a score. */
function Unscored(props: { queries: Queries; name: string; places: number[] }) {
  const { queries, name, places } = props;
  if (places.length === 0) return null;
  return (
    <Section title="Responses without a score" lead="These responses are missing or could not be judged.">
      <p class="near">
        {places.slice(0, MOST).map((place) => {
          const id = queries.table.id[place]!;
          return <a key={place} href={to.response(name, id)}><Name>{id}</Name></a>;
        })}
        {places.length > MOST && `and ${plural(places.length - MOST, "query", "queries")} more`}
      </p>
    </Section>
  );
}

/** Links to the neighbors in the ranking, and to comparisons with them. */
function Neighbors({ candidate }: { candidate: number }) {
  const { candidates } = useReport().head;
  const here = candidates[candidate]!;
  const near = [candidates[candidate - 1], candidates[candidate + 1]];
  const step = (other: (typeof candidates)[number] | undefined) =>
    other === undefined ? null : { href: to.candidate(other.name), label: other.name };
  return (
    <>
      <Stepper before={step(near[0])} after={step(near[1])} order="Next in the ranking" />
      <p class="near">
        Compare with
        {near.map((other) => other && (
          <a key={other.name} href={to.compare(here.name, other.name)}><Name>{other.name}</Name></a>
        ))}
      </p>
    </>
  );
}

// What changed since a baseline run: the choice of the baseline, the verdicts, and the responses.

import type { BaselineChoice, CandidateLine, DiffPage } from "../contract";
import { useReport } from "../context";
import { count, ends, isAfter, moment, plural, two } from "../format";
import { axisAround, IntervalBar } from "../parts/interval_bar";
import { Opened } from "../parts/opened";
import { fetched } from "../parts/pulse";
import { Heading, Name, Section, Tag } from "../parts/words";
import { fieldsIn, to, useHash } from "../routes";
import { ChangeLines, ChangeReader } from "./change_reader";
import { changingOf, MOODS } from "./change_list";
import { gapWords } from "./gaps";

const TRAIL: [string, string][] = [[to.overview(), "Overview"]];

export function ChangesView() {
  const { head } = useReport();
  const changing = changingOf(useHash());
  if (head.index_at === null)
    return (
      <>
        <Heading trail={TRAIL} title="Changes" />
        <p class="notice">
          To compare this run with an earlier one, show the folder that has both:{" "}
          <code>rocketeval view runs</code>
        </p>
      </>
    );
  if (changing.base === "") return <Baselines />;
  return (
    <Opened
      name={`changes since ${changing.base}`}
      open={() => fetched<DiffPage>(`diff.json${fieldsIn({ base: changing.base })}`)}
      absent={null}
    >
      {(page) => {
        if (page.refused) return <Refused page={page} />;
        if (changing.query) return <ChangeReader page={page} changing={changing} />;
        return <Changes page={page} />;
      }}
    </Opened>
  );
}

function Baselines() {
  return (
    <>
      <Heading trail={TRAIL} title="What changed" />
      <Opened name="baselines" open={() => fetched<BaselineChoice[]>("baselines.json")}>
        {(runs) => <BaselineList runs={runs} />}
      </Opened>
    </>
  );
}

function BaselineList({ runs }: { runs: BaselineChoice[] }) {
  const { head } = useReport();
  const usable = runs.filter(({ why }) => why === "");
  const others = runs.filter(({ why }) => why !== "");
  return (
    <>
      {usable.length > 0 ? (
        <Section title="Choose a baseline" lead="Runs with the same judge, method and scorer, newest first.">
          <ul class="baselines">
            {usable.map((run) => (
              <li key={run.slug}>
                <a href={to.changes({ base: run.slug })}><Name>{run.name}</Name></a>
                <span>{moment(run.created)}{isAfter(run.created, head.created) && ", newer than this run"}</span>
                <span>judge <Name>{run.judge}</Name></span>
              </li>
            ))}
          </ul>
        </Section>
      ) : (
        <p class="notice">
          No run can serve as a baseline. Grade an earlier version with the same judge, method and scorer, under another{" "}
          <code>name</code>.
        </p>
      )}
      {others.length > 0 && (
        <Section title="Not comparable" lead="Other queries, another judge or another method.">
          <ul class="baselines">
            {others.map((run) => (
              <li key={run.slug}><b><Name>{run.name}</Name></b><span>{run.why.replaceAll(" -> ", " \u2192 ")}</span></li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Refused({ page }: { page: DiffPage }) {
  return (
    <>
      <Heading trail={[...TRAIL, [to.changes(), "What changed"]]} title="Not comparable" />
      <p class="notice loud" role="status">{page.refused.replaceAll(" -> ", " \u2192 ")}</p>
      <p><a href={to.changes()}>Choose another baseline</a></p>
    </>
  );
}

function Changes({ page }: { page: DiffPage }) {
  const { head } = useReport();
  const changing = changingOf(useHash());
  const own = page.candidates;
  const sum = (value: (line: CandidateLine) => number) => own.reduce((total, line) => total + value(line), 0);
  const rewritten = sum((line) => line.rewritten);
  return (
    <>
      <Heading
        trail={[...TRAIL, [to.changes(), "What changed"]]}
        title={`What changed since ${page.base}`}
        facts={[
          <>this run of {moment(head.created)}, baseline of {moment(page.created)}</>,
          <>judge <Name>{page.judge}</Name></>,
          <a href={to.changes()}>Choose another baseline</a>,
        ]}
      />
      {isAfter(page.created, head.created) && (
        <p class="notice loud" role="status">
          The baseline is newer than this run. What fell here has risen since; open {page.base} to compare in order.
        </p>
      )}
      <p class="change-verdict"><Name>{page.conclusion}</Name></p>
      <ul class="facts change-facts">
        <li><b>{count(sum((line) => line.worse))}</b> scores fell, <b>{count(sum((line) => line.better))}</b> rose (by {page.tie_margin} or more)</li>
        <li><b>{count(sum((line) => line.worse_answers))}</b> worse answers, <b>{count(sum((line) => line.better_answers))}</b> better</li>
        <li>{rewritten === 0 ? "no response has another text" : <><b>{count(rewritten)}</b> responses have another text</>}</li>
        {own.length > 1 && <li>the best response changed on <b>{count(page.best.length + page.best_left_out)}</b> queries</li>}
      </ul>
      <Verdicts page={page} />
      {page.best.length > 0 && <BestChanges page={page} />}
      <Section
        title="Responses, regressions first"
        lead={<>An answer is worse or better if it crossed 0.5 and moved by {page.flipped} or more; for a penalty, yes is worse. Scores are on the scale {head.scale[0]}&#8211;{head.scale[1]}.</>}
      >
        {page.changes.length === 0
          ? <p class="hint">No score, answer or response changed.</p>
          : <ChangeLines page={page} changing={changing} />}
      </Section>
    </>
  );
}

function Verdicts({ page }: { page: DiffPage }) {
  const axis = axisAround(page.candidates.map(({ effect }) => effect), [0]);
  return (
    <Section title="Candidates" lead={<>The verdict of <code>rocketeval compare</code>: this run against the baseline, query by query.</>}>
      <div class="scroll">
        <table class="changes-table">
          <thead>
            <tr>
              <th scope="col">Candidate</th>
              <th scope="col">Verdict</th>
              <th scope="col" class="number">Mean score</th>
              <th scope="col" class="drawn">Difference, 95% interval</th>
              <th scope="col" class="number">p</th>
              <th scope="col" class="number">Queries: fell, same, rose</th>
            </tr>
          </thead>
          <tbody>
            {page.candidates.map((line) => (
              <tr key={line.candidate}>
                <th scope="row"><a href={to.candidate(line.candidate)}><Name>{line.candidate}</Name></a></th>
                <td><Tag mood={MOODS[line.mood]}>{line.verdict}</Tag></td>
                <td class="number" data-label="Mean score">{two(line.before)} → <b>{two(line.now)}</b></td>
                <td class="drawn">
                  <IntervalBar of={line.effect} axis={axis} unit="score" />
                  <span><b>{gapWords(line.effect.value)}</b> <small>{ends(line.effect, "score")}</small></span>
                </td>
                <td class="number" data-label="p">{line.p_value < 0.001 ? "<0.001" : line.p_value.toFixed(3)}</td>
                <td class="number" data-label="Fell, same, rose">
                  <a href={to.changes({ base: changingOf(location.hash).base, of: line.candidate, only: "worse" })}>{count(line.worse)}</a>
                  , {count(line.same)}, {count(line.better)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {page.notes.map((note) => <p key={note} class="hint">{note}</p>)}
    </Section>
  );
}

const SHOWN = 8;

function BestChanges({ page }: { page: DiffPage }) {
  const names = (list: string[]) => list.map((name, place) => <>{place > 0 && ", "}<Name>{name}</Name></>);
  const line = ({ query, snippet, before, now }: DiffPage["best"][number]) => (
    <li key={query}>
      <a href={to.read({ q: query, c: [now[0]!, before[0]!] })} dir="auto">{snippet || query}</a>
      <span>{names(before)} → <b>{names(now)}</b></span>
    </li>
  );
  const rest = page.best.slice(SHOWN);
  return (
    <Section title="Queries with another best response" lead="Best up to the tie margin, before and now.">
      <ul class="best-changes">{page.best.slice(0, SHOWN).map(line)}</ul>
      {rest.length > 0 && (
        <details>
          <summary>{plural(rest.length, "more query", "more queries")}</summary>
          <ul class="best-changes">{rest.map(line)}</ul>
        </details>
      )}
      {page.best_left_out > 0 && <p class="hint">{plural(page.best_left_out, "query is", "queries are")} left out.</p>}
    </Section>
  );
}

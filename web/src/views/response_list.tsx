// All responses to one query; an expanded one shows its text and answers.

import { useMemo } from "preact/hooks";
import { useReport } from "../context";
import { two } from "../format";
import { FoldList } from "../parts/fold_list";
import { Strip } from "../parts/heat";
import { ScoreBar } from "../parts/score_bar";
import { Name, Section, Tag } from "../parts/words";
import { to } from "../routes";
import { AnswerList } from "./answer_list";
import { plainNumber } from "./gaps";
import { ordered } from "./heat_order";
import { ResponseText } from "./response_text";
import type { QueryResults } from "./sheet";

export function ResponseList({ results }: { results: QueryResults }) {
  const { head } = useReport();
  const candidates = useMemo(() => ordered(results, { by: "score", down: true }), [results]);
  return (
    <Section title="Responses" lead="Best score on this query first.">
      <FoldList
        entries={candidates}
        keyOf={(candidate) => head.candidates[candidate]!.name}
        rowHeight={41}
        name="Responses"
        line={(candidate) => <ResponseLine results={results} candidate={candidate} />}
        inside={(candidate) => <ResponseInside results={results} candidate={candidate} />}
      />
    </Section>
  );
}

interface OneProps {
  results: QueryResults;
  candidate: number;
}

function ResponseLine({ results, candidate }: OneProps) {
  const { head } = useReport();
  const score = results.scores[candidate] ?? null;
  const label = results.label(candidate);
  return (
    <span class="line response-line">
      <span class="measure">
        <span class="spoken">Score </span>
        <b>{score === null ? <span class="loud">none</span> : two(score)}</b>
        <ScoreBar score={score} scale={head.scale} />
      </span>
      <span class="what"><Name>{head.candidates[candidate]!.name}</Name></span>
      <span>{label !== undefined && <Tag>label {plainNumber(label)}</Tag>}</span>
      <Strip answers={results.answers[candidate] ?? []} />
    </span>
  );
}

function ResponseInside({ results, candidate }: OneProps) {
  const { name } = useReport().head.candidates[candidate]!;
  return (
    <>
      <div class="halves">
        <ResponseText results={results} candidate={candidate} />
        <AnswerList results={results} candidate={candidate} />
      </div>
      <p class="hint">
        <a href={to.response(name, results.id)}>Open this response</a>{" \u00b7 "}
        <a href={to.candidate(name)}>All responses of <Name>{name}</Name></a>
      </p>
    </>
  );
}

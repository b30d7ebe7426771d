// Every response to one query, folded; an opened one shows its text beside its answers.

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
import type { Sheet } from "./sheet";

export function ResponseList({ sheet }: { sheet: Sheet }) {
  const { head } = useReport();
  const candidates = useMemo(() => ordered(sheet, { by: "score", down: true }), [sheet]);
  return (
    <Section title="Responses" lead="Best score on this query first.">
      <FoldList
        entries={candidates}
        keyOf={(candidate) => head.candidates[candidate]!.name}
        rowHeight={41}
        name="Responses"
        line={(candidate) => <ResponseLine sheet={sheet} candidate={candidate} />}
        inside={(candidate) => <ResponseInside sheet={sheet} candidate={candidate} />}
      />
    </Section>
  );
}

interface OneProps {
  sheet: Sheet;
  candidate: number;
}

function ResponseLine({ sheet, candidate }: OneProps) {
  const { head } = useReport();
  const score = sheet.scores[candidate] ?? null;
  const label = sheet.label(candidate);
  return (
    <span class="line response-line">
      <span class="measure">
        <span class="spoken">Score </span>
        <b>{score === null ? <span class="loud">none</span> : two(score)}</b>
        <ScoreBar score={score} scale={head.scale} />
      </span>
      <span class="what"><Name>{head.candidates[candidate]!.name}</Name></span>
      <span>{label !== undefined && <Tag>label {plainNumber(label)}</Tag>}</span>
      <Strip answers={sheet.answers[candidate] ?? []} />
    </span>
  );
}

function ResponseInside({ sheet, candidate }: OneProps) {
  const { name } = useReport().head.candidates[candidate]!;
  return (
    <>
      <div class="halves">
        <ResponseText sheet={sheet} candidate={candidate} />
        <AnswerList sheet={sheet} candidate={candidate} />
      </div>
      <p class="hint">
        <a href={to.response(name, sheet.id)}>This response on a page of its own</a>{" \u00b7 "}
        <a href={to.candidate(name)}>all responses of <Name>{name}</Name></a>
      </p>
    </>
  );
}

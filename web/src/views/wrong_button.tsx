// "This answer is wrong": a person's objection to one answer of the judge.

import { useMemo, useState } from "preact/hooks";
import { collectorOf } from "../collector";
import { useReport } from "../context";
import { to } from "../routes";
import type { QueryResults } from "./sheet";

export function WrongButton(props: { results: QueryResults; candidate: number; item: number }) {
  const { results, candidate, item } = props;
  const report = useReport();
  const collector = useMemo(() => collectorOf(report), [report]);
  const [saved, setSaved] = useState("");
  const [problem, setProblem] = useState("");
  // Labels are offered where they are collected, or where the page can keep them.
  if (report.head.blocks === "served" && !report.head.labeler) return null;
  const toggle = async () => {
    try {
      if (saved) {
        await collector.send({ kind: "undo", id: saved });
        setSaved("");
        return;
      }
      const progress = await collector.send({
        kind: "answer", query: results.id, candidate: report.head.candidates[candidate]!.name,
        item: item + 1, text: results.block.items[item]!, p_yes: results.answers[candidate]?.[item] ?? null,
      });
      setSaved(progress.saved);
      setProblem("");
    } catch (error) {
      setProblem(String(error));
    }
  };
  return (
    <>
      <button
        type="button" class="wrong" aria-pressed={saved !== ""} title="Record that this answer of the judge is wrong"
        onClick={() => void toggle()}
      >
        {saved ? "Marked wrong" : "Wrong?"}<span class="spoken"> item {item + 1}, {report.head.candidates[candidate]!.name}</span>
      </button>
      {saved && !collector.isLasting() && <small class="loud" role="status">Only in this tab: <a href={to.label()}>download it</a></small>}
      {problem && <small class="loud" role="status">{problem}</small>}
    </>
  );
}

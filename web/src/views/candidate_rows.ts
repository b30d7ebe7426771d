// One candidate's scores, compared with the other candidates.

import type { Queries, Scores } from "../report";

export interface CandidateRow {
  query: number;
  score: number;
  /** Mean score of the other candidates on the query; null without others. */
  others: number | null;
  gap: number | null;
}

export function candidateRows(
  queries: Queries,
  scores: Scores,
  candidate: number,
  candidates: number,
): CandidateRow[] {
  const rows: CandidateRow[] = [];
  for (let query = 0; query < queries.count; query++) {
    const score = scores.at(query, candidate);
    if (typeof score !== "number") continue;
    const others = meanOfOthers(scores, query, candidate, candidates);
    rows.push({ query, score, others, gap: others === null ? null : score - others });
  }
  return rows;
}

function meanOfOthers(scores: Scores, query: number, candidate: number, candidates: number) {
  let sum = 0;
  let number = 0;
  for (let other = 0; other < candidates; other++) {
    const score = other === candidate ? null : scores.at(query, other);
    if (typeof score !== "number") continue;
    sum += score;
    number++;
  }
  return number ? sum / number : null;
}

/** Queries without a score of the candidate, among those whose scores are in the page. */
export function unscored(queries: Queries, scores: Scores, candidate: number): number[] {
  const places = Array.from({ length: queries.count }, (_, query) => query);
  return places.filter((query) => scores.at(query, candidate) === null);
}

export interface SliceRow {
  /** The value of the field. */
  name: string;
  queries: number;
  score: number;
  others: number | null;
  gap: number | null;
}

/** Means by the values of a field, sorted by the difference from the other candidates. */
export function sliceRows(queries: Queries, rows: CandidateRow[], field: string): SliceRow[] {
  const groups = new Map<string, CandidateRow[]>();
  for (const row of rows)
    for (const value of queries.values(field, row.query)) {
      const members = groups.get(value);
      if (members) members.push(row);
      else groups.set(value, [row]);
    }
  const made = [...groups].map(([name, members]) => {
    const paired = members.filter((row) => row.others !== null);
    const score = mean(members.map((row) => row.score))!;
    const others = mean(paired.map((row) => row.others!));
    const gap = mean(paired.map((row) => row.gap!));
    return { name, queries: members.length, score, others, gap };
  });
  return made.sort((a, b) => (a.gap ?? 0) - (b.gap ?? 0));
}

const mean = (values: number[]) =>
  values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;

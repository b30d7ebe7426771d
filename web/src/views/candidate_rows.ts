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

export interface CategoryRow {
  category: string;
  queries: number;
  score: number;
  others: number | null;
  gap: number | null;
}

/** Means by category, sorted by the difference from the other candidates. */
export function categoryRows(queries: Queries, rows: CandidateRow[]): CategoryRow[] {
  const groups = new Map<string, CandidateRow[]>();
  for (const row of rows) {
    const category = queries.table.category[row.query] ?? "";
    const members = groups.get(category);
    if (members) members.push(row);
    else groups.set(category, [row]);
  }
  const made = [...groups].map(([category, members]) => {
    const paired = members.filter((row) => row.others !== null);
    const score = mean(members.map((row) => row.score))!;
    const others = mean(paired.map((row) => row.others!));
    const gap = mean(paired.map((row) => row.gap!));
    return { category, queries: members.length, score, others, gap };
  });
  return made.sort((a, b) => (a.gap ?? 0) - (b.gap ?? 0));
}

const mean = (values: number[]) =>
  values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;

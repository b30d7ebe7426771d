// Which parts of a response move an answer: what is asked of the server, and what the page says of it.

import type { InfluenceCost, InfluenceOffer, InfluenceStep, AnswerInfluence, PieceInfluence } from "./contract";
import { count, money, plural, two } from "./format";
import { fetched } from "./parts/pulse";
import { fieldsIn } from "./routes";

export interface Question {
  query: string;
  candidate: string;
  /** From 1. */
  item: number;
}

export const offered = (question: Question) =>
  fetched<InfluenceOffer>(`influence${fieldsIn({ ...question, item: String(question.item) })}`);

/** Asks the judge; the signal cancels outstanding requests. */
export async function asked(
  question: Question,
  signal: AbortSignal,
  onStep: (step: InfluenceStep) => void,
): Promise<AnswerInfluence> {
  const answer = await fetch("influence", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question), signal,
  });
  if (!answer.ok || !answer.body) throw new Error(`The server returned ${answer.status}.`);
  let last: InfluenceStep | null = null;
  for await (const line of linesIn(answer.body)) {
    last = JSON.parse(line) as InfluenceStep;
    onStep(last);
  }
  if (last?.result) return last.result;
  throw new Error(last?.problem || "The server ended without a result.");
}

/** The lines of a stream of UTF-8, wherever its chunks are cut. */
export async function* linesIn(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const lines = (rest + decoder.decode(chunk.value, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines.filter(Boolean);
  }
  if (rest) yield rest;
}

/** What asking would cost, in sentences. */
export function costWords({ requests, contact, tokens, cost, currency }: InfluenceCost): string[] {
  const more = contact > 0 ? `, and up to ${contact} short requests to check that the judge is the same` : "";
  return [
    `${plural(requests, "request", "requests")} with about ${count(tokens)} prompt tokens${more}.`,
    cost === null ? "The price of this judge is not known." : `Estimated cost: ${money(cost, currency)}.`,
  ];
}

/** How the response was divided, in a sentence; says so if neighbors are left out together. */
export function divisionWords({ units, asked }: { units: number; asked: number }): string {
  const parts = plural(units, "part", "parts");
  if (units <= asked) return `The response has ${parts}: sentences, list items, code blocks and tables.`;
  return `The response has ${parts}. Neighbors are left out together, as ${plural(asked, "block", "blocks")}.`;
}

export interface RankedPiece extends PieceInfluence {
  /** Position in the response. */
  place: number;
}

/** How far a part moves the answer; most, if the item does not apply without it. */
const reach = ({ change, inapplicable }: PieceInfluence) => (inapplicable ? 1 : Math.abs(change ?? 0));

/** The parts that move the answer, the strongest first. */
export const ranked = ({ pieces }: AnswerInfluence): RankedPiece[] =>
  pieces
    .map((piece, place) => ({ ...piece, place }))
    .filter(({ clear }) => clear)
    .sort((a, b) => reach(b) - reach(a));

export type Direction = "raises" | "lowers" | "needed";

export const directionOf = ({ change, inapplicable }: PieceInfluence): Direction =>
  inapplicable ? "needed" : (change ?? 0) < 0 ? "lowers" : "raises";

const MARKS: Record<Direction, string> = { raises: "\u25b2", lowers: "\u25bc", needed: "\u25c6" };

export function changeWords(piece: PieceInfluence): string {
  const direction = directionOf(piece);
  if (direction === "needed") return `${MARKS.needed} not applicable without it`;
  return `${MARKS[direction]} ${direction} by ${two(Math.abs(piece.change ?? 0))}`;
}

/** The shading of a part, in percent of the strongest. */
export function strength(piece: PieceInfluence, { pieces }: AnswerInfluence): number {
  const most = Math.max(...pieces.map(reach));
  return most > 0 ? Math.round((100 * reach(piece)) / most) : 0;
}

/** Number of parts without an answer. */
export const unanswered = ({ pieces }: AnswerInfluence) =>
  pieces.filter(({ unit, p_yes, inapplicable }) => unit && p_yes === null && !inapplicable).length;

/** The beginning of a part on one line. */
export function excerpt(text: string, most = 90): string {
  const letters = [...text.replace(/\s+/g, " ").trim()];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}\u2026`;
}

/** A part without the blanks at its end, and the blanks. */
export function ending(text: string): [body: string, blanks: string] {
  const body = text.trimEnd();
  return [body, text.slice(body.length)];
}

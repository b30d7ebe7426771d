// The leaderboard as a picture that can be read by itself: run, judge, date, result, ratings.

import type { Candidate, Head } from "../contract";
import { day, ends, plural, shortened, show } from "../format";
import { axisAround, type Axis } from "./interval_bar";

const WIDTH = 960;
const ROW = 30;
const MARGIN = 32;
const MOST = 30;
const LETTERS = 104;
const BAR: [number, number] = [380, 640];

// XML allows no control characters, and names are untrusted.
const UNSAFE = /[&<>"']|[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const SAFE: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };
const safe = (text: string) => text.toWellFormed().replace(UNSAFE, (mark) => SAFE[mark] ?? "\ufffd");

interface Style {
  size?: number;
  bold?: boolean;
  color?: string;
  end?: boolean;
}

function text(x: number, y: number, content: string, { size = 14, bold, color = "#181c21", end }: Style = {}): string {
  const weight = bold ? ' font-weight="600"' : "";
  const anchor = end ? ' text-anchor="end"' : "";
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${color}"${weight}${anchor}>${safe(content)}</text>`;
}

/** Lines of at most `most` letters; words are not divided unless they are longer. */
export function wrapped(words: string, most = LETTERS): string[] {
  const lines: string[] = [];
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(shortened(word, most));
  }
  return lines;
}

const SOFT = "#5a636e";

/** The picture as SVG, with its size in pixels. */
export function boardImage(head: Head): { svg: string; width: number; height: number } {
  const rows = head.candidates.slice(0, MOST);
  const axis = axisAround(rows.map(({ rating }) => rating));
  const level = Math.round(100 * head.level);
  const queries = head.sizes.find(([name]) => name === "queries")?.[1] ?? 0;
  const about = [
    `Judge ${shortened(head.judge, 48)}`,
    `${plural(queries, "query", "queries")} of ${shortened(head.benchmark, 32)}`,
    day(head.finished || head.created),
  ].filter(Boolean).join(" \u00b7 ");
  const parts = [text(MARGIN, 46, `Leaderboard of run ${shortened(head.run, 60)}`, { size: 22, bold: true }), text(MARGIN, 70, about, { color: SOFT })];
  let y = 98;
  const conclusion = head.provisional ? `Not final. ${head.provisional}` : head.conclusion;
  for (const line of wrapped(conclusion).slice(0, 4)) {
    parts.push(text(MARGIN, y, line, { size: 15 }));
    y += 21;
  }
  y += 20;
  parts.push(
    text(MARGIN, y, "Rank", { size: 12, color: SOFT }), text(100, y, "Candidate", { size: 12, color: SOFT }),
    text(BAR[0], y, `Rating, ${level}% interval`, { size: 12, color: SOFT }),
    text(WIDTH - MARGIN, y, `Mean score (${head.scale[0]}\u2013${head.scale[1]})`, { size: 12, color: SOFT, end: true }),
  );
  y += 10;
  parts.push(...brackets(rows, y));
  for (const row of rows) {
    parts.push(rowOf(row, y, axis));
    y += ROW;
  }
  y += 24;
  const more = head.candidates.length - rows.length;
  const notes = [
    more > 0 ? `The first ${rows.length} of ${head.candidates.length} candidates.` : "",
    "Candidates in a bracket are statistically tied with the first one in it.",
    `Made with ${head.made_with}.`,
  ].filter(Boolean).join(" ");
  for (const line of wrapped(notes, 130)) {
    parts.push(text(MARGIN, y, line, { size: 12, color: SOFT }));
    y += 17;
  }
  const height = y + 12;
  const font = 'font-family="system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif"';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${safe(`Leaderboard of run ${head.run}`)}" ${font}>`
    + `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>${parts.join("")}</svg>`;
  return { svg, width: WIDTH, height };
}

function rowOf(row: Candidate, top: number, axis: Axis): string {
  const y = top + 20;
  const middle = top + 15;
  const range = row.rank_low === row.rank_high ? "" : ` (${row.rank_low}\u2013${row.rank_high})`;
  const at = (value: number) => BAR[0] + ((value - axis.low) / (axis.high - axis.low)) * (BAR[1] - BAR[0]);
  const parts = [
    `<line x1="${MARGIN}" x2="${WIDTH - MARGIN}" y1="${top}" y2="${top}" stroke="#e1e0da"/>`,
    text(MARGIN, y, row.rank === null ? "\u2013" : `${row.rank}${range}`),
    text(100, y, shortened(row.name, 32), { bold: true }),
  ];
  if (row.rating === null) parts.push(text(BAR[0], y, "not ranked", { color: SOFT }));
  else {
    const low = at(row.rating.low ?? axis.low).toFixed(1);
    const high = at(row.rating.high ?? axis.high).toFixed(1);
    parts.push(
      `<line x1="${low}" x2="${high}" y1="${middle}" y2="${middle}" stroke="#9db7d3" stroke-width="5" stroke-linecap="round"/>`,
      `<circle cx="${at(row.rating.value).toFixed(1)}" cy="${middle}" r="5" fill="#17589c"/>`,
      text(BAR[1] + 20, y, `${show(row.rating.value, "rating")} (${ends(row.rating, "rating")})`, { size: 13 }),
    );
  }
  if (row.score !== null)
    parts.push(text(WIDTH - MARGIN, y, `${show(row.score.value, "score")} (${ends(row.score, "score")})`, { size: 13, end: true }));
  return parts.join("");
}

/** A line along each group of two or more; `top` is the upper edge of the first row. */
export function brackets(rows: Candidate[], top: number): string[] {
  const lines: string[] = [];
  let first = 0;
  rows.forEach(({ group }, place) => {
    if (group !== null && rows[place + 1]?.group === group) return;
    if (group !== null && place > first)
      lines.push(`<path d="M94 ${top + first * ROW + 6}h-5V${top + (place + 1) * ROW - 6}h5" fill="none" stroke="#181c21"/>`);
    first = place + 1;
  });
  return lines;
}

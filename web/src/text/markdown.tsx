// Markdown as elements. Nothing is parsed as HTML: every text becomes a text node, HTML in the text
// is shown as it is written, images are not loaded, and only web and mail links can be followed.

import { Marked, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { CopyButton } from "../parts/copy_button";
import { highlighted } from "./highlight";
import { formula } from "./math";

/** Longer texts are shown as they are written. */
export const MOST_RENDERED = 100_000;
/** Deeper nesting is shown as it is written. */
const DEEPEST = 30;

interface MathToken {
  type: "formula";
  raw: string;
  source: string;
  block: boolean;
}

const BLOCK = /^(?:\$\$([^]+?)\$\$|\\\[([^]+?)\\\])/;
const INLINE = /^(?:\\\(([^\n]+?)\\\)|\$(?![\s$])((?:\\[^\n]|[^\n\\$])*?[^\s\\$])\$(?![0-9]))/;

const found = (raw: string, source: string, block: boolean): MathToken => ({
  type: "formula", raw, source, block,
});

function blockFormula(text: string) {
  const at = BLOCK.exec(text);
  return at ? found(at[0], at[1] ?? at[2]!, true) : undefined;
}

function inlineFormula(text: string) {
  const at = INLINE.exec(text);
  return at ? found(at[0], at[1] ?? at[2]!, false) : undefined;
}

const startOf = (pattern: RegExp) => (text: string) => {
  const at = text.search(pattern);
  return at < 0 ? undefined : at;
};

const reader = new Marked({ gfm: true, breaks: true }, {
  extensions: [
    { name: "formula", level: "block", start: startOf(/\$\$|\\\[/), tokenizer: blockFormula },
    { name: "formula", level: "inline", start: startOf(/\$|\\[([]/), tokenizer: (text: string) => blockFormula(text) ?? inlineFormula(text) },
  ],
});

/** The text as elements; null if it is too long or nested too deeply to render. */
export function markdown(text: string): ComponentChildren | null {
  if (text.length > MOST_RENDERED) return null;
  try {
    return blocks(reader.lexer(text), 0);
  } catch (error) {
    // A text nested thousands of levels deep exhausts the stack.
    if (error instanceof RangeError || error instanceof TooDeep) return null;
    throw error;
  }
}

class TooDeep extends Error {}

const blocks = (tokens: Token[], depth: number): ComponentChildren => {
  if (depth > DEEPEST) throw new TooDeep();
  return tokens.map((token, place) => block(token as Tokens.Generic, depth, place));
};

function block(token: Tokens.Generic, depth: number, place: number): ComponentChildren {
  const inner = () => inlines(token.tokens ?? [], depth + 1);
  switch (token.type) {
    case "space": return null;
    case "heading": return <p key={place} class={`heading-${token.depth}`} role="heading" aria-level={Math.min(6, token.depth + 3)} dir="auto">{inner()}</p>;
    case "paragraph": return <p key={place} dir="auto">{inner()}</p>;
    case "text": return <span key={place} dir="auto">{token.tokens ? inner() : decoded(token.text)}</span>;
    case "code": return <Code key={place} code={token.text} language={(token.lang ?? "").match(/^\S*/)![0]} />;
    case "blockquote": return <blockquote key={place} dir="auto">{blocks(token.tokens ?? [], depth + 1)}</blockquote>;
    case "list": return <List key={place} list={token as Tokens.List} depth={depth} />;
    case "table": return <Table key={place} table={token as Tokens.Table} depth={depth} />;
    case "hr": return <hr key={place} />;
    case "formula": return <Formula key={place} token={token as unknown as MathToken} />;
    case "html": case "def": return <p key={place} class="markup" dir="auto">{token.raw}</p>;
    default: return <p key={place} dir="auto">{token.raw}</p>;
  }
}

const inlines = (tokens: Token[], depth: number): ComponentChildren => {
  if (depth > DEEPEST) throw new TooDeep();
  return tokens.map((token, place) => inline(token as Tokens.Generic, depth, place));
};

function inline(token: Tokens.Generic, depth: number, place: number): ComponentChildren {
  const inner = () => inlines(token.tokens ?? [], depth + 1);
  switch (token.type) {
    case "strong": return <strong key={place}>{inner()}</strong>;
    case "em": return <em key={place}>{inner()}</em>;
    case "del": return <del key={place}>{inner()}</del>;
    case "codespan": return <code key={place} dir="auto">{token.text}</code>;
    case "br": return <br key={place} />;
    case "escape": return token.text;
    case "text": return token.tokens ? inner() : decoded(token.text);
    case "link": return <Link key={place} address={token.href}>{inner()}</Link>;
    case "image": return <span key={place} class="markup" title={token.href}>[image: {token.text || token.href}]</span>;
    case "formula": return <Formula key={place} token={token as unknown as MathToken} />;
    case "html": return /^<br\s*\/?>$/i.test(token.raw) ? <br key={place} /> : token.raw;
    default: return token.raw;
  }
}

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** Replaces character references, which Markdown allows in text. */
const decoded = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (whole, ten, sixteen, name) => {
    if (name) return NAMED[String(name).toLowerCase()] ?? whole;
    const code = ten ? Number(ten) : parseInt(sixteen, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : whole;
  });

function Link({ address, children }: { address: string; children: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return <span class="markup" title={address}>{children}</span>;
  return <a href={address} title={address} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}

export function Code({ code, language }: { code: string; language: string }) {
  return (
    <div class="code" dir="ltr">
      <div class="code-head"><span>{language.slice(0, 24)}</span><CopyButton text={code} what="code" /></div>
      <pre tabIndex={0}><code>{highlighted(code, language)}</code></pre>
    </div>
  );
}

function Formula({ token }: { token: MathToken }) {
  const drawn = formula(token.source, token.block);
  return drawn ?? <code class="tex">{token.raw}</code>;
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const entries = list.items.map((item, place) => (
    <li key={place} dir="auto">
      {item.task && <span aria-label={item.checked ? "done" : "to do"}>{item.checked ? "\u2611 " : "\u2610 "}</span>}
      {blocks(item.tokens.filter(({ type }) => type !== "checkbox"), depth + 1)}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{entries}</ol> : <ul>{entries}</ul>;
}

function Table({ table, depth }: { table: Tokens.Table; depth: number }) {
  const cell = (each: Tokens.TableCell) => inlines(each.tokens, depth + 1);
  return (
    <div class="scroll" tabIndex={0}>
      <table>
        <thead><tr>{table.header.map((each, place) => <th key={place} dir="auto" class={each.align ?? ""}>{cell(each)}</th>)}</tr></thead>
        <tbody>
          {table.rows.map((row, place) => (
            <tr key={place}>{row.map((each, column) => <td key={column} dir="auto" class={each.align ?? ""}>{cell(each)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

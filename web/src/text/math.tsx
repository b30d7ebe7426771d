// TeX formulas as MathML. Covers what models write in practice; `formula` returns null for the
// rest, and the page then shows the source.

import { h, type ComponentChildren, type VNode } from "preact";

type Attributes = Record<string, string | undefined>;

const element = (name: string, attributes: Attributes, ...children: ComponentChildren[]): VNode =>
  h(name, attributes, ...children) as VNode;

/** The formula as a math element; null if it uses an unknown command. */
export function formula(source: string, block: boolean): VNode | null {
  try {
    const reader = new Reader(tokens(source));
    const content = reader.rows();
    if (!reader.isAtEnd) return null;
    return element("math", { display: block ? "block" : "inline" }, content);
  } catch (error) {
    if (error instanceof Unknown || error instanceof RangeError) return null;
    throw error;
  }
}

class Unknown extends Error {}

const MOST_TOKENS = 2_000;

/** Commands, words in text commands, and characters, without spaces between them. */
const TOKEN = /\\(?:text\w*|mbox|mathrm|operatorname\*?)\s*\{[^{}]*\}|\\(?:[A-Za-z]+\*?|[^])|\s+|[^]/gu;

function tokens(source: string): string[] {
  const found = source.match(TOKEN) ?? [];
  if (found.length > MOST_TOKENS) throw new Unknown("too long");
  return found.filter((token) => token.trim() !== "");
}

/** A table without the names that every object has, such as "constructor". */
const table = <T = string,>(entries: Record<string, T>): Record<string, T> =>
  Object.assign(Object.create(null), entries);

const GREEK = table({
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η",
  theta: "θ", vartheta: "ϑ", iota: "ι", kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π",
  rho: "ρ", sigma: "σ", tau: "τ", upsilon: "υ", phi: "ϕ", varphi: "φ", chi: "χ", psi: "ψ",
  omega: "ω", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ",
  Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞", partial: "∂", nabla: "∇", ell: "ℓ", hbar: "ℏ",
  emptyset: "∅", varnothing: "∅", Re: "ℜ", Im: "ℑ", aleph: "ℵ", angle: "∠", degree: "°", prime: "′",
  dots: "…", ldots: "…", cdots: "⋯", vdots: "⋮", ddots: "⋱", top: "⊤", bot: "⊥", square: "□",
  checkmark: "✓", "%": "%", $: "$", "#": "#", _: "_", imath: "ı", jmath: "ȷ",
});
const OPERATORS = table({
  cdot: "⋅", times: "×", div: "÷", pm: "±", mp: "∓", ast: "∗", star: "⋆", circ: "∘", bullet: "∙",
  le: "≤", leq: "≤", ge: "≥", geq: "≥", ne: "≠", neq: "≠", lt: "<", gt: ">", approx: "≈", equiv: "≡",
  sim: "∼", simeq: "≃", cong: "≅", propto: "∝", ll: "≪", gg: "≫", in: "∈", notin: "∉", ni: "∋",
  subset: "⊂", subseteq: "⊆", supset: "⊃", supseteq: "⊇", cup: "∪", cap: "∩", setminus: "∖",
  to: "→", rightarrow: "→", leftarrow: "←", leftrightarrow: "↔", Rightarrow: "⇒", Leftarrow: "⇐",
  Leftrightarrow: "⇔", implies: "⟹", iff: "⟺", mapsto: "↦", longrightarrow: "⟶", uparrow: "↑",
  downarrow: "↓", forall: "∀", exists: "∃", neg: "¬", lnot: "¬", land: "∧", wedge: "∧", lor: "∨",
  vee: "∨", oplus: "⊕", otimes: "⊗", mid: "∣", nmid: "∤", parallel: "∥", perp: "⊥", vdash: "⊢",
  models: "⊨", therefore: "∴", because: "∵", colon: ":", lbrace: "{", rbrace: "}", "{": "{", "}": "}",
  "&": "&", langle: "⟨", rangle: "⟩", lceil: "⌈", rceil: "⌉", lfloor: "⌊", rfloor: "⌋", vert: "|",
  lvert: "|", rvert: "|", Vert: "‖", lVert: "‖", rVert: "‖", "|": "‖", backslash: "\\",
});
const LARGE = table({
  sum: "∑", prod: "∏", coprod: "∐", bigcup: "⋃", bigcap: "⋂", bigoplus: "⨁", bigotimes: "⨂",
});
const INTEGRALS = table({ int: "∫", iint: "∬", iiint: "∭", oint: "∮" });
const FUNCTIONS = new Set(
  ("arccos arcsin arctan arg cos cosh cot csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln "
    + "log max min mod Pr sec sin sinh sup tan tanh").split(" "),
);
const LIMITS = new Set(["lim", "max", "min", "sup", "inf", "liminf", "limsup", "gcd", "det", "Pr"]);
const ACCENTS = table({
  hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", overrightarrow: "→", dot: "˙", ddot: "¨",
  tilde: "~", widetilde: "~",
});
const SPACES = table({
  ",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "0em", " ": "0.33em", quad: "1em", qquad: "2em",
});
const VARIANTS = table({
  mathbb: "double-struck", mathcal: "script", mathscr: "script", mathfrak: "fraktur",
});
const PLAIN = new Set(["mathrm", "text", "textbf", "textit", "textrm", "mbox", "operatorname", "texttt"]);
const BOLD = new Set(["mathbf", "boldsymbol", "bm"]);
const SAME = new Set([
  "mathit", "mathsf", "displaystyle", "textstyle", "limits", "nolimits", "big", "Big", "bigg", "Bigg",
  "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "nonumber", "notag", "hfill",
]);
const FENCES = table<[string, string]>({
  matrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], vmatrix: ["|", "|"],
  Bmatrix: ["{", "}"], cases: ["{", ""], aligned: ["", ""], align: ["", ""], "align*": ["", ""],
  array: ["", ""], gathered: ["", ""], split: ["", ""], equation: ["", ""], "equation*": ["", ""],
});

const operator = (text: string, more: Attributes = {}) => element("mo", more, text);

class Reader {
  private at = 0;

  constructor(private readonly all: string[]) {}

  get isAtEnd(): boolean {
    return this.at >= this.all.length;
  }

  private peek(): string | undefined {
    return this.all[this.at];
  }

  /** Lines separated by \\ at the top level. */
  rows(): ComponentChildren {
    const first = this.row("\\\\");
    if (this.peek() !== "\\\\") return first;
    const lines = [first];
    while (this.peek() === "\\\\") {
      this.at += 1;
      lines.push(this.row());
    }
    return element("mtable", {}, lines.map((line) => element("mtr", {}, element("mtd", {}, line))));
  }

  private row(...ends: string[]): VNode {
    const parts: ComponentChildren[] = [];
    while (!this.isAtEnd && !ends.includes(this.peek()!)) parts.push(this.scripted());
    return element("mrow", {}, parts);
  }

  /** One atom with its sub- and superscripts. */
  private scripted(): VNode {
    const limits = this.isAtLimits();
    let base = this.atom();
    let under: VNode | null = null;
    let over: VNode | null = null;
    for (;;) {
      if (this.peek() === "_" && !under) under = this.after();
      else if (this.peek() === "^" && !over) over = this.after();
      else if (this.peek() === "'" && !over) over = this.primes();
      else break;
    }
    if (under && over) base = element(limits ? "munderover" : "msubsup", {}, base, under, over);
    else if (under) base = element(limits ? "munder" : "msub", {}, base, under);
    else if (over) base = element(limits ? "mover" : "msup", {}, base, over);
    return base;
  }

  private isAtLimits(): boolean {
    const name = this.peek()?.slice(1) ?? "";
    return name in LARGE || LIMITS.has(name) || name === "underbrace" || name === "overbrace";
  }

  private after(): VNode {
    this.at += 1;
    return this.atom();
  }

  private primes(): VNode {
    let marks = "";
    while (this.peek() === "'") {
      marks += "′";
      this.at += 1;
    }
    return operator(marks);
  }

  private atom(): VNode {
    const token = this.all[this.at++];
    if (token === undefined) throw new Unknown("end");
    if (token === "{") return this.closed();
    if (/^\\\w.*\}$/s.test(token)) return element("mtext", {}, token.replace(/^[^{]*\{|\}$/g, ""));
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (/[0-9]/.test(token)) return this.number(token);
    if (/\p{L}/u.test(token)) return element("mi", {}, token);
    if (token === "^" || token === "_" || token === "&" || token === "}") throw new Unknown(token);
    if (token === "~") return element("mspace", { width: "0.33em" });
    return operator(token === "-" ? "−" : token === "*" ? "∗" : token);
  }

  private number(first: string): VNode {
    let text = first;
    const isDigit = (token = "") => /^[0-9]$/.test(token);
    const isPoint = (token = "") => /^[.,]$/.test(token);
    while (isDigit(this.peek()) || (isPoint(this.peek()) && isDigit(this.all[this.at + 1])))
      text += this.all[this.at++];
    return element("mn", {}, text);
  }

  private closed(): VNode {
    const row = this.row("}");
    if (this.peek() !== "}") throw new Unknown("}");
    this.at += 1;
    return row;
  }

  /** The source between braces, for texts and names. */
  private words(): string {
    if (this.peek() !== "{") return this.all[this.at++] ?? "";
    let depth = 0;
    let text = "";
    do {
      const token = this.all[this.at++];
      if (token === undefined) throw new Unknown("}");
      if (token === "{") depth += 1;
      else if (token === "}") depth -= 1;
      else text += token.replace(/^\\(?=[^A-Za-z])/, "");
    } while (depth > 0);
    return text;
  }

  private command(name: string): VNode {
    if (name in GREEK) return element("mi", { mathvariant: /^[A-Z]/.test(name) ? "normal" : undefined }, GREEK[name]);
    if (name in OPERATORS) return operator(OPERATORS[name]!);
    if (name in LARGE) return operator(LARGE[name]!, { largeop: "true", movablelimits: "true" });
    if (name in INTEGRALS) return operator(INTEGRALS[name]!, { largeop: "true" });
    if (FUNCTIONS.has(name)) return element("mi", {}, name);
    if (name in SPACES) return element("mspace", { width: SPACES[name] });
    if (SAME.has(name)) return this.isAtEnd ? element("mrow", {}) : this.scripted();
    if (PLAIN.has(name)) return element("mtext", {}, this.words());
    if (BOLD.has(name)) return element("mrow", { class: "bold" }, this.atom());
    if (name in VARIANTS) return element("mi", { mathvariant: VARIANTS[name] }, this.words());
    if (name in ACCENTS) return element("mover", { accent: "true" }, this.atom(), operator(ACCENTS[name]!));
    switch (name) {
      case "frac": case "dfrac": case "tfrac": case "cfrac":
        return element("mfrac", {}, this.atom(), this.atom());
      case "binom":
        return element("mrow", {}, operator("("), element("mfrac", { linethickness: "0" }, this.atom(), this.atom()), operator(")"));
      case "sqrt": return this.root();
      case "underline": return element("munder", {}, this.atom(), operator("_"));
      case "underbrace": return element("munder", {}, this.atom(), operator("⏟"));
      case "overbrace": return element("mover", {}, this.atom(), operator("⏞"));
      case "stackrel": case "overset": {
        const over = this.atom();
        return element("mover", {}, this.atom(), over);
      }
      case "underset": {
        const under = this.atom();
        return element("munder", {}, this.atom(), under);
      }
      case "boxed": return element("mrow", { class: "boxed" }, this.atom());
      case "pmod": return element("mrow", {}, operator("("), element("mi", {}, "mod"), element("mspace", { width: "0.33em" }), this.atom(), operator(")"));
      case "bmod": return operator("mod");
      case "not": return element("mrow", {}, operator("¬"), this.atom());
      case "tag": return element("mtext", {}, ` (${this.words()})`);
      case "left": return this.fenced();
      case "begin": return this.environment();
      default: throw new Unknown(name);
    }
  }

  private root(): VNode {
    if (this.peek() !== "[") return element("msqrt", {}, this.atom());
    this.at += 1;
    const index = this.row("]");
    if (this.peek() !== "]") throw new Unknown("]");
    this.at += 1;
    return element("mroot", {}, this.atom(), index);
  }

  private fence(): string {
    const token = this.all[this.at++] ?? "";
    const name = token.startsWith("\\") ? token.slice(1) : "";
    if (token === ".") return "";
    if (name === "") return token;
    if (name in OPERATORS) return OPERATORS[name]!;
    throw new Unknown(token);
  }

  private fenced(): VNode {
    const open = this.fence();
    const parts: ComponentChildren[] = [];
    while (!this.isAtEnd && this.peek() !== "\\right") {
      if (this.peek() === "\\middle") {
        this.at += 1;
        parts.push(operator(this.fence(), { stretchy: "true" }));
      } else parts.push(this.scripted());
    }
    if (this.peek() !== "\\right") throw new Unknown("right");
    this.at += 1;
    return wrapped(open, element("mrow", {}, parts), this.fence());
  }

  private environment(): VNode {
    const name = this.words();
    const fences = FENCES[name];
    if (!fences) throw new Unknown(name);
    if (name === "array") this.words();
    const rows: VNode[] = [];
    let cells: VNode[] = [];
    for (;;) {
      cells.push(element("mtd", {}, this.row("&", "\\\\", "\\end")));
      const end = this.all[this.at++];
      if (end === "&") continue;
      rows.push(element("mtr", {}, cells));
      cells = [];
      if (end === "\\\\") continue;
      if (end !== "\\end" || this.words() !== name) throw new Unknown("end");
      break;
    }
    const isAligned = /^(align|split)/.test(name);
    return wrapped(fences[0], element("mtable", { class: isAligned ? "aligned" : name === "cases" ? "cases" : "" }, rows), fences[1]);
  }
}

const wrapped = (open: string, inside: VNode, close: string): VNode =>
  element("mrow", {},
    open && operator(open, { stretchy: "true", fence: "true" }),
    inside,
    close && operator(close, { stretchy: "true", fence: "true" }));

"use strict";
// Responses are untrusted: every string enters the page as a text node or through setAttribute
// on an attribute that cannot run anything. Nothing here ever parses markup.

const PAGE = 200;
const SNIPPET = 160;
const DASH = "\u2013";
const report = JSON.parse(document.getElementById("data").textContent);
const statuses = new Map(Object.entries(report.statuses));
const candidates = new Map(report.candidates.map((entry) => [entry.name, entry]));
const queries = new Map(report.queries.map((query) => [query.id, query]));

// ---- Building blocks ----

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

function route(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

function link(target, label) {
  return make("a", { href: target }, make("bdi", {}, label));
}

function prose(text) {
  return make("div", { class: "text", dir: "auto" }, text);
}

function titled(title, ...children) {
  return make("section", {}, make("h2", {}, title), ...children);
}

function snippet(text) {
  const line = text.slice(0, 4 * SNIPPET).replace(/\s+/g, " ").trim();
  return line.length > SNIPPET ? line.slice(0, SNIPPET).trimEnd() + "\u2026" : line;
}

function plural(count, one, more) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

// ---- Figures ----

function readAnswer(stored) {
  if (typeof stored === "number") return { p: stored, low: null, high: null, status: "ok" };
  if (stored === null) return { p: null, low: null, high: null, status: "missing" };
  const [p, low, high, status] = stored;
  return { p, low, high, status };
}

function statusText(status) {
  return statuses.get(status) ?? status.replaceAll("_", " ");
}

function describe(answer) {
  const wide = answer.low !== null && answer.high !== null;
  const range = wide ? ` (${answer.low.toFixed(2)}${DASH}${answer.high.toFixed(2)})` : "";
  const value = answer.p === null ? "missing" : answer.p.toFixed(2);
  const why = answer.status === "ok" || answer.status === "missing" ? "" : ": " + statusText(answer.status);
  return value + range + why;
}

function scoreCell(score) {
  if (score === null) return make("span", { class: "loud" }, "no score");
  return make("span", { class: "value" }, score.toFixed(2));
}

function mean(numbers) {
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
}

// Strength grows with the distance from a coin toss; the sign picks the hue.
function heat(element, answer) {
  if (answer.p === null) {
    element.classList.add("heat", "gap");
    return element;
  }
  element.classList.add("heat", answer.p >= 0.5 ? "yes" : "no");
  element.style.setProperty("--strength", `${Math.round(Math.abs(answer.p - 0.5) * 200)}%`);
  return element;
}

function bar(answer) {
  const track = make("span", { class: "bar", "aria-hidden": "true" });
  if (answer.p !== null) {
    const fill = make("span", { class: answer.p >= 0.5 ? "fill yes" : "fill no" });
    fill.style.inlineSize = `${answer.p * 100}%`;
    track.append(fill);
  } else {
    track.classList.add("gap");
  }
  if (answer.low !== null && answer.high !== null) {
    const range = make("span", { class: "range" });
    range.style.insetInlineStart = `${answer.low * 100}%`;
    range.style.inlineSize = `${(answer.high - answer.low) * 100}%`;
    track.append(range);
  }
  return track;
}

function strip(response) {
  const cells = response.answers.map((stored) => heat(make("span", {}), readAnswer(stored)));
  return make("span", { class: "strip", "aria-hidden": "true" }, cells);
}

// ---- Lists that stay short ----

function paged(container, entries, render) {
  const button = make("button", { type: "button", class: "more" });
  let shown = 0;
  function more() {
    const next = entries.slice(shown, shown + PAGE);
    container.append(...next.map(render));
    shown += next.length;
    button.hidden = shown >= entries.length;
    button.textContent = `Show ${Math.min(PAGE, entries.length - shown)} more (${shown} of ${entries.length} shown)`;
  }
  button.addEventListener("click", () => {
    const first = shown;
    more();
    container.children[first].querySelector("a, summary")?.focus();
  });
  more();
  return [container, button];
}

function filtered(entries, haystack, render) {
  const list = make("div", { class: "list" });
  const input = make("input", { type: "search", placeholder: "id, category or words of the query" });
  const status = make("p", { class: "hint", role: "status" });
  function update() {
    const needle = input.value.trim().toLowerCase();
    const kept = needle ? entries.filter((entry) => haystack(entry).toLowerCase().includes(needle)) : entries;
    list.replaceChildren(...paged(make("div", {}), kept, render));
    status.textContent = needle ? `${kept.length} of ${entries.length} match` : "";
  }
  input.addEventListener("input", update);
  update();
  return make("div", {}, make("label", { class: "filter" }, "Filter ", input), status, list);
}

function folded(summary, fill) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => details.append(...fill()), { once: true });
  return details;
}

// ---- One response ----

function conversation(turns) {
  if (!turns || !turns.length) return null;
  const lines = turns.map(([role, content]) => [make("dt", {}, role), make("dd", {}, prose(content))]);
  return titled("Conversation before", make("dl", { class: "turns" }, lines.flat()));
}

function itemLine(item, stored, place) {
  const answer = readAnswer(stored ?? null);
  const mood = answer.p === null ? "figure loud" : "figure";
  return make(
    "li",
    { class: "item" },
    make("span", { class: "question", dir: "auto" }, item),
    bar(answer),
    make("span", { class: mood }, describe(answer)),
  );
}

function checklist(query, response) {
  if (!query.items.length) return make("p", { class: "loud" }, "This query has no checklist.");
  const lines = query.items.map((item, place) => itemLine(item, response.answers[place], place));
  return make("ol", { class: "items" }, lines);
}

function disarmed(response) {
  if (!response.neutralised) return null;
  const what = plural(response.neutralised, "forged delimiter or special token was", "forged delimiters or special tokens were");
  return make("p", { class: "hint" }, `${what} disarmed before the judge saw this response.`);
}

function responseBody(query, response) {
  return [
    conversation(response.history),
    titled("Response", disarmed(response), prose(response.text)),
    titled("Probability of yes, item by item", checklist(query, response)),
  ].filter((part) => part !== null);
}

function responseOf(query, candidate) {
  return query.responses.find((response) => response.candidate === candidate);
}

// ---- Views ----

function heading(trail, title, ...facts) {
  const crumbs = trail.map(([target, label]) => make("li", {}, link(target, label)));
  return make(
    "header",
    {},
    make("nav", { "aria-label": "Where you are" }, make("ol", { class: "crumbs" }, crumbs)),
    make("h1", { tabindex: "-1" }, make("bdi", {}, title)),
    make("ul", { class: "facts" }, facts.filter((fact) => fact !== null).map((fact) => make("li", {}, fact))),
  );
}

const HOME = ["#/", "Leaderboard"];
const QUERIES = ["#/queries", "Queries"];

function missingView(what) {
  const left = report.omitted ? ` ${plural(report.omitted, "query was", "queries were")} left out of this file.` : "";
  return [heading([HOME], "Not in this report"), make("p", {}, what + left)];
}

function omittedHint() {
  if (!report.omitted) return null;
  return make("p", { class: "hint loud" }, `${plural(report.omitted, "more query is", "more queries are")} scored and ranked, but left out of this file.`);
}

function queryLabel(query) {
  return make("span", { class: "what" }, make("b", {}, make("bdi", {}, query.id)), category(query), make("span", { class: "snippet", dir: "auto" }, snippet(query.text)));
}

function category(query) {
  return query.category === null ? null : make("span", { class: "tag" }, query.category);
}

function haystack(query) {
  return `${query.id}\n${query.category ?? ""}\n${query.text}`;
}

function byScore(a, b) {
  return (a.score ?? Infinity) - (b.score ?? Infinity);
}

function candidateLine({ query, response, score }, candidate) {
  return folded([scoreCell(score), queryLabel(query), strip(response)], () => [
    make("p", { class: "links" }, link(route("candidate", candidate, query.id), "Open this response"), link(route("query", query.id), "Compare all candidates")),
    titled("Query", prose(query.text)),
    ...responseBody(query, response),
  ]);
}

function candidateView(name) {
  const entries = report.queries
    .map((query) => ({ query, response: responseOf(query, name) }))
    .filter((entry) => entry.response)
    .map((entry) => ({ ...entry, score: entry.response.score }))
    .sort(byScore);
  const row = candidates.get(name);
  if (!entries.length && !row) return missingView(`There is no candidate named \u201c${name}\u201d.`);
  const facts = row ? [`Rank ${row.rank}`, `Rating ${row.rating}`, `Mean score ${row.score}`] : ["Not ranked"];
  if (row && row.missing) facts.push(make("span", { class: "loud" }, `${row.missing} of ${row.queries} queries without a score`));
  return [
    heading([HOME], name, ...facts),
    make("p", { class: "hint" }, "Lowest score first; responses without a score come last."),
    omittedHint(),
    filtered(entries, (entry) => haystack(entry.query), (entry) => candidateLine(entry, name)),
  ];
}

function responseView(name, id) {
  const query = queries.get(id);
  const response = query && responseOf(query, name);
  if (!response) return missingView(`There is no response of \u201c${name}\u201d to query \u201c${id}\u201d.`);
  return [
    heading([HOME, [route("candidate", name), name], [route("query", id), id]], `${name}: ${id}`, ["Score ", scoreCell(response.score)], category(query)),
    response.history === null ? conversation(query.history) : null,
    titled("Query", prose(query.text)),
    ...responseBody(query, response),
    reference(query),
  ];
}

function reference(query) {
  return query.reference === null ? null : titled("Reference response", prose(query.reference));
}

function queryView(id) {
  const query = queries.get(id);
  if (!query) return missingView(`There is no query \u201c${id}\u201d.`);
  const ordered = [...query.responses].sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity));
  const items = query.items.map((item) => make("li", { dir: "auto" }, item));
  return [
    heading([HOME, QUERIES], id, category(query), plural(ordered.length, "response", "responses")),
    conversation(query.history),
    titled("Query", prose(query.text)),
    titled("Checklist", items.length ? make("ol", { class: "plain" }, items) : make("p", { class: "loud" }, "This query has no checklist.")),
    titled("Probability of yes, candidate by candidate", heatMap(query, ordered)),
    titled("Responses", paged(make("div", { class: "list" }), ordered, (response) => responseLine(query, response))),
    reference(query),
  ];
}

function responseLine(query, response) {
  const label = make("span", { class: "what" }, make("b", {}, make("bdi", {}, response.candidate)), make("span", { class: "snippet", dir: "auto" }, snippet(response.text)));
  return folded([scoreCell(response.score), label, strip(response)], () => responseBody(query, response));
}

function heatMap(query, responses) {
  const numbers = query.items.map((item, place) => make("th", { scope: "col", class: "number", title: item }, String(place + 1)));
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Candidate"), make("th", { scope: "col", class: "number" }, "Score"), numbers));
  const [body, more] = paged(make("tbody", {}), responses, (response) => heatRow(query, response));
  const frame = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Probability of yes by candidate and item" }, make("table", { class: "heatmap" }, head, body));
  return [frame, more];
}

function heatRow(query, response) {
  const cells = query.items.map((item, place) => {
    const answer = readAnswer(response.answers[place] ?? null);
    const shown = answer.p === null ? statusText(answer.status) : answer.p.toFixed(2);
    return heat(make("td", { class: "number", title: `${item} ${describe(answer)}` }, shown), answer);
  });
  const name = make("th", { scope: "row" }, link(route("candidate", response.candidate, query.id), response.candidate));
  return make("tr", {}, name, make("td", { class: "number" }, scoreCell(response.score)), cells);
}

function queriesView() {
  const entries = report.queries.map((query) => {
    const scores = query.responses.map((response) => response.score).filter((score) => score !== null);
    return { query, score: mean(scores), gap: query.responses.length - scores.length };
  });
  return [
    heading([HOME], "Queries", plural(entries.length, "query", "queries")),
    make("p", { class: "hint" }, "Lowest mean score over the candidates first."),
    omittedHint(),
    filtered(entries.sort(byScore), (entry) => haystack(entry.query), queryLine),
  ];
}

function queryLine({ query, score, gap }) {
  const lost = gap ? make("span", { class: "loud" }, plural(gap, "response without a score", "responses without a score")) : null;
  return make("a", { class: "line", href: route("query", query.id) }, scoreCell(score), queryLabel(query), lost);
}

// ---- Routes ----

const drawn = new Map();
const overview = document.getElementById("overview");
const stage = document.getElementById("view");
const homeTitle = document.title;
const homeState = { top: 0 };
let current = homeState;

function draw(hash) {
  let parts;
  try {
    parts = hash.slice(2).split("/").map(decodeURIComponent);
  } catch {
    return missingView("The address of this page is damaged.");
  }
  const [kind, first, second] = parts;
  if (kind === "queries" && parts.length === 1) return queriesView();
  if (kind === "query" && parts.length === 2) return queryView(first);
  if (kind === "candidate" && parts.length === 2) return candidateView(first);
  if (kind === "candidate" && parts.length === 3) return responseView(first, second);
  return missingView("There is no such page.");
}

// Views are kept, so that going back finds the list as it was left.
function viewOf(hash) {
  if (!drawn.has(hash)) {
    if (drawn.size > 20) drawn.delete(drawn.keys().next().value);
    drawn.set(hash, { node: make("div", {}, draw(hash)), top: 0 });
  }
  return drawn.get(hash);
}

function show() {
  const hash = location.hash;
  const home = !hash.startsWith("#/") || hash === "#/";
  if (home && hash !== "#/" && !overview.hidden) return;
  current.top = window.scrollY;
  current = home ? homeState : viewOf(hash);
  overview.hidden = !home;
  stage.hidden = home;
  stage.replaceChildren(...(home ? [] : [current.node]));
  const title = (home ? overview : stage).querySelector("h1");
  document.title = home ? homeTitle : `${title.textContent} \u00b7 ${homeTitle}`;
  title.focus({ preventScroll: true });
  window.scrollTo(0, current.top);
}

function foldLeaderboard() {
  const rows = [...document.querySelectorAll(".leaderboard tbody tr")];
  if (rows.length <= PAGE) return;
  const rest = rows.slice(PAGE);
  for (const row of rest) row.hidden = true;
  const button = make("button", { type: "button", class: "more" }, `Show ${rest.length} more candidates`);
  button.addEventListener("click", () => {
    for (const row of rest) row.hidden = false;
    button.remove();
    rest[0].querySelector("a").focus();
  });
  document.querySelector(".leaderboard").after(button);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
history.scrollRestoration = "manual";
window.addEventListener("hashchange", show);
foldLeaderboard();
show();

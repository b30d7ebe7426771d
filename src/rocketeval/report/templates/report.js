"use strict";
// Responses are untrusted: every string enters the page as a text node, or as the value of an
// attribute that cannot run anything. Nothing here ever parses markup.

const PAGE = 200;
const SNIPPET = 240;
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

const route = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
const link = (target, label) => make("a", { href: target }, make("bdi", {}, label));
const prose = (text) => make("div", { class: "text", dir: "auto" }, text);
const loud = (text) => make("span", { class: "loud" }, text);
const hint = (text) => make("p", { class: "hint" }, text);
const titled = (title, ...children) => make("section", {}, make("h2", {}, title), ...children);

function labelled(name, tag, text) {
  const start = text.slice(0, SNIPPET).replace(/\s+/g, " ");
  const snippet = make("span", { class: "snippet", dir: "auto" }, start);
  return make("span", { class: "what" }, make("b", {}, make("bdi", {}, name)), tag, snippet);
}

const plural = (count, one, more) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

// ---- Figures ----

function readAnswer(stored) {
  if (typeof stored === "number") return { p: stored, low: null, high: null, status: "ok" };
  const [p, low, high, status] = stored ?? [null, null, null, "missing"];
  return { p, low, high, status };
}

function answersOf(query, response) {
  return query.items.map((item, place) => readAnswer(response.answers[place] ?? null));
}

const isBounded = (answer) => answer.low !== null && answer.high !== null;
const statusText = (status) => statuses.get(status) ?? status.replaceAll("_", " ");

function describe(answer) {
  const value = answer.p === null ? "missing" : answer.p.toFixed(2);
  const ends = [answer.low, answer.high].map((end) => end?.toFixed(2)).join("\u2013");
  const why = ["ok", "missing"].includes(answer.status) ? "" : `: ${statusText(answer.status)}`;
  return value + (isBounded(answer) ? ` (${ends})` : "") + why;
}

const scoreText = (score) => score === null ? loud("no score") : make("b", {}, score.toFixed(2));
const mean = (numbers) =>
  numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;

function side(answer) {
  if (answer.p === null) return "gap";
  return answer.p >= 0.5 ? "yes" : "no";
}

// The hue says yes or no; its strength is the distance from a coin toss.
function heat(element, answer) {
  element.classList.add("heat", side(answer));
  const strength = answer.p === null ? 0 : Math.abs(answer.p - 0.5) * 200;
  element.style.setProperty("--strength", `${Math.round(strength)}%`);
  return element;
}

function span(name, from, to) {
  const part = make("span", { class: name });
  part.style.insetInlineStart = `${from * 100}%`;
  part.style.inlineSize = `${(to - from) * 100}%`;
  return part;
}

function bar(answer) {
  const track = make("span", { class: "bar", "aria-hidden": "true" });
  if (answer.p === null) track.classList.add("gap");
  else track.append(span(`fill ${side(answer)}`, 0, answer.p));
  if (isBounded(answer)) track.append(span("range", answer.low, answer.high));
  return track;
}

function strip(query, response) {
  const cells = answersOf(query, response).map((answer) => heat(make("span", {}), answer));
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
    button.textContent = `Show more (${shown} of ${entries.length} shown)`;
  }
  button.addEventListener("click", () => {
    const first = shown;
    more();
    container.children[first].querySelector("a, summary")?.focus();
  });
  more();
  return [container, button];
}

function searchable(entries, render) {
  const list = make("div", {});
  const placeholder = "id, category or words of the query";
  const input = make("input", { type: "search", placeholder });
  const found = make("p", { class: "hint", role: "status" });
  const texts = entries.map(({ query }) => `${query.id}\n${query.category ?? ""}\n${query.text}`);
  const haystacks = texts.map((text) => text.toLowerCase());
  function update() {
    const needle = input.value.trim().toLowerCase();
    const kept = entries.filter((entry, place) => haystacks[place].includes(needle));
    list.replaceChildren(...paged(make("div", { class: "list" }), kept, render));
    found.textContent = needle ? `${kept.length} of ${entries.length} match` : "";
  }
  input.addEventListener("input", update);
  update();
  return make("div", {}, make("label", { class: "filter" }, "Filter", input), found, list);
}

function folded(summary, fill) {
  const details = make("details", {}, make("summary", {}, summary));
  details.addEventListener("toggle", () => details.append(...fill()), { once: true });
  return details;
}

// ---- Parts of a view ----

function heading(trail, title, ...facts) {
  const crumbs = [["#/", report.run], ...trail].map(([target, label]) => link(target, label));
  const steps = crumbs.map((crumb) => make("li", {}, crumb));
  const known = facts.filter((fact) => fact !== null).map((fact) => make("li", {}, fact));
  return make(
    "header",
    {},
    make("nav", { "aria-label": "Where you are" }, make("ol", { class: "crumbs" }, steps)),
    make("h1", { tabindex: "-1" }, make("bdi", {}, title)),
    make("ul", { class: "facts" }, known),
  );
}

const category = (query) =>
  query.category === null ? null : make("span", { class: "tag" }, query.category);

function conversation(turns) {
  if (!turns || !turns.length) return null;
  const lines = turns.flatMap(([role, said]) => [
    make("dt", {}, role),
    make("dd", {}, prose(said)),
  ]);
  return titled("Conversation before", make("dl", { class: "turns" }, lines));
}

const reference = (query) =>
  query.reference === null ? null : titled("Reference response", prose(query.reference));

function itemLine(item, answer) {
  const question = make("span", { class: "question", dir: "auto" }, item);
  const mood = answer.p === null ? "figure loud" : "figure";
  return make("li", {}, question, bar(answer), make("span", { class: mood }, describe(answer)));
}

function itemFigures(figure, items) {
  if (!figure) return null;
  const equal = ` (learned; equal would be ${(1 / items).toFixed(2)})`;
  const shown = [
    `weight ${figure.weight.toFixed(2)}${figure.learned ? equal : ""}`,
    figure.mean === null ? "no answers" : `mean ${figure.mean.toFixed(2)}`,
    figure.spread === null ? null : `spread ${figure.spread.toFixed(2)}`,
    figure.correlation === null ? null : `correlation with score ${figure.correlation.toFixed(2)}`,
  ];
  const words = make("small", {}, shown.filter((part) => part !== null).join(" \u00b7 "));
  const dead = figure.dead === null ? null : make("span", { class: "tag" }, figure.dead);
  return make("span", { class: "measures" }, words, dead);
}

function checklist(query, lines) {
  if (!query.items.length) return make("p", {}, loud("This query has no checklist."));
  return make("ol", { class: "items" }, lines);
}

function disarmed(count) {
  if (!count) return null;
  const what = plural(count, "forged delimiter or token", "forged delimiters or tokens");
  return hint(`${what} disarmed before the judge saw this response.`);
}

function responseBody(query, response) {
  const answers = answersOf(query, response);
  const lines = query.items.map((item, place) => itemLine(item, answers[place]));
  const pair = make(
    "div",
    { class: "pair" },
    titled("Response", disarmed(response.neutralised), prose(response.text)),
    titled(report.answers, checklist(query, lines)),
  );
  return [conversation(response.history), pair].filter((part) => part !== null);
}

const responseOf = (query, candidate) =>
  query.responses.find((response) => response.candidate === candidate);

function omitted() {
  if (!report.omitted) return null;
  const what = plural(report.omitted, "more query is", "more queries are");
  return make("p", {}, loud(`${what} scored and ranked, but left out of this file.`));
}

const byScore = (a, b) => (a.score ?? Infinity) - (b.score ?? Infinity);

// ---- Views ----

function notFound(what) {
  return [heading([], "Not in this report"), make("p", {}, what), omitted()];
}

function candidateView(name) {
  const entries = report.queries
    .map((query) => ({ query, response: responseOf(query, name) }))
    .filter(({ response }) => response)
    .map((entry) => ({ ...entry, score: entry.response.score }));
  const row = candidates.get(name);
  if (!entries.length && !row) return notFound(`There is no candidate \u201c${name}\u201d.`);
  return [
    heading([], name, ...candidateFacts(row)),
    hint("Lowest score first; responses without a score come last."),
    omitted(),
    searchable(entries.sort(byScore), candidateLine),
  ];
}

function candidateFacts(row) {
  if (!row) return [loud("Not ranked")];
  const lost = row.missing ? loud(`${row.missing} of ${row.queries} without a score`) : null;
  return [`Rank ${row.rank}`, `Rating ${row.rating}`, `Mean score ${row.score}`, lost];
}

function candidateLine({ query, response, score }) {
  const label = labelled(query.id, category(query), query.text);
  return folded([scoreText(score), label, strip(query, response)], () => [
    make(
      "p",
      { class: "links" },
      link(route("candidate", response.candidate, query.id), "Open alone"),
      link(route("query", query.id), "Compare all candidates"),
    ),
    titled("Query", prose(query.text)),
    ...responseBody(query, response),
  ]);
}

function responseView(name, id) {
  const query = queries.get(id);
  const response = query && responseOf(query, name);
  if (!response) return notFound(`\u201c${name}\u201d has no response to \u201c${id}\u201d.`);
  const trail = [[route("candidate", name), name], [route("query", id), id]];
  return [
    heading(trail, `${name}: ${id}`, ["Score ", scoreText(response.score)], category(query)),
    response.history === null ? conversation(query.history) : null,
    titled("Query", prose(query.text)),
    ...responseBody(query, response),
    reference(query),
  ];
}

function queryView(id) {
  const query = queries.get(id);
  if (!query) return notFound(`There is no query \u201c${id}\u201d.`);
  const best = [...query.responses].sort((a, b) => (b.score ?? -1e9) - (a.score ?? -1e9));
  const items = query.items.map((item, place) => {
    const question = make("span", { class: "question", dir: "auto" }, item);
    return make("li", {}, question, itemFigures(query.figures[place], query.items.length));
  });
  const lines = paged(make("div", { class: "list" }), best, (response) => {
    const label = labelled(response.candidate, null, response.text);
    const summary = [scoreText(response.score), label, strip(query, response)];
    return folded(summary, () => responseBody(query, response));
  });
  return [
    heading([["#/queries", "Queries"]], id, category(query)),
    conversation(query.history),
    titled("Query", prose(query.text)),
    titled("Checklist", checklist(query, items)),
    titled(report.answers, heatMap(query, best)),
    titled("Responses", lines),
    reference(query),
  ];
}

function heatMap(query, responses) {
  const names = ["Candidate", "Score", ...query.items.map((item, place) => String(place + 1))];
  const head = names.map((name) => make("th", { scope: "col" }, name));
  const [body, button] = paged(make("tbody", {}), responses, (each) => heatRow(query, each));
  const table = make("table", { class: "heatmap" }, make("thead", {}, make("tr", {}, head)), body);
  const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Heat map" };
  return [make("div", region, table), button];
}

function heatRow(query, response) {
  const target = route("candidate", response.candidate, query.id);
  const cells = answersOf(query, response).map((answer, place) => {
    const shown = answer.p === null ? statusText(answer.status) : answer.p.toFixed(2);
    const title = `${query.items[place]} ${describe(answer)}`;
    return heat(make("td", { title }, shown), answer);
  });
  const name = make("th", { scope: "row" }, link(target, response.candidate));
  return make("tr", {}, name, make("td", {}, scoreText(response.score)), cells);
}

function queriesView() {
  const entries = report.queries.map((query) => {
    const scores = query.responses.map(({ score }) => score).filter((score) => score !== null);
    return { query, score: mean(scores), lost: query.responses.length - scores.length };
  });
  return [
    heading([], "Queries"),
    hint("Lowest mean score over the candidates first."),
    omitted(),
    searchable(entries.sort(byScore), queryLine),
  ];
}

function queryLine({ query, score, lost }) {
  const gap = lost ? loud(`${lost} without a score`) : null;
  const label = labelled(query.id, category(query), query.text);
  return make("a", { class: "line", href: route("query", query.id) }, scoreText(score), label, gap);
}

// ---- Routes ----

const overview = document.getElementById("overview");
const stage = document.getElementById("view");
const homeTitle = document.title;
const home = { top: 0 };
const drawn = new Map();
let current = home;

function draw(hash) {
  let parts;
  try {
    parts = hash.slice(2).split("/").map(decodeURIComponent);
  } catch {
    return notFound("The address of this page is damaged.");
  }
  const [kind, ...names] = parts;
  if (kind === "queries" && names.length === 0) return queriesView();
  if (kind === "query" && names.length === 1) return queryView(...names);
  if (kind === "candidate" && names.length === 1) return candidateView(...names);
  if (kind === "candidate" && names.length === 2) return responseView(...names);
  return notFound("There is no such page.");
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
  const isHome = !location.hash.startsWith("#/") || location.hash === "#/";
  if (isHome && current === home) return;
  current.top = window.scrollY;
  current = isHome ? home : viewOf(location.hash);
  overview.hidden = !isHome;
  stage.hidden = isHome;
  stage.replaceChildren(...(isHome ? [] : [current.node]));
  const title = (isHome ? overview : stage).querySelector("h1");
  document.title = isHome ? homeTitle : `${title.textContent} \u00b7 ${homeTitle}`;
  title.focus({ preventScroll: true });
  window.scrollTo(0, current.top);
}

function foldLeaderboard() {
  const rest = [...document.querySelectorAll(".leaderboard tbody tr")].slice(PAGE);
  if (!rest.length) return;
  for (const row of rest) row.hidden = true;
  const button = make("button", { type: "button", class: "more" }, `Show ${rest.length} more`);
  button.addEventListener("click", () => {
    for (const row of rest) row.hidden = false;
    button.remove();
    rest[0].querySelector("a").focus();
  });
  document.querySelector(".leaderboard").after(button);
}

history.scrollRestoration = "manual";
window.addEventListener("hashchange", show);
foldLeaderboard();
show();

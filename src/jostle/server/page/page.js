// The page: asks the service's own operations and shows what they answer.
import { badge, bars, coverageChart, duration, fill, heat, make } from "./draw.js";
import { control, glance, requestsOf, timelineOf, valueOf, verbsOf } from "./form.js";
import { searchBox } from "./search.js";

const ANYWHERE = "";
const MOST_ROWS = 30, MOST_COLUMNS = 24;
const $ = (id) => document.getElementById(id);
let workloads = [], platforms = [], beside = [], verbs = {}, reasons = {}, questions = 0, fleetQuestions = 0, edits = 0;
const workloadBox = searchBox($("workload"), $("workload-list"), { names: () => workloads, choose: outdate, keeps: true });
const besideBox = searchBox($("beside"), $("beside-list"), {
  names: () => workloads,
  choose: (name) => {
    beside.push(name);
    showChosen();
  },
  last: () => {
    beside.pop();
    showChosen();
  },
});

async function call(path, body) {
  const headers = { "Content-Type": "application/json" };
  const key = sessionStorage.getItem("jostle-key");
  if (key) headers.Authorization = `Bearer ${key}`;
  const given = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(path, given);
  const document_ = await answer.json();
  if (answer.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    $("key").select();
  }
  if (!answer.ok) throw new Error(document_.detail || `status ${answer.status}`);
  return document_;
}

function options(select, names, first) {
  const made = names.map((name) => make("option", { value: name }, name));
  fill(select, ...(first === undefined ? [] : [make("option", { value: "" }, first)]), ...made);
}

// What is shown answers an older question: greyed, with a sentence, until it is asked anew.
function outdate() {
  edits += 1;
  document.body.classList.toggle("outdated", questions > 0);
  $("outdated").hidden = questions === 0;
}

function showChosen() {
  outdate();
  fill($("chosen"), ...beside.map((name, at) => make("span", { class: "chip" }, name,
    make("button", { type: "button", "aria-label": `Remove ${name}`, onclick: () => {
      beside.splice(at, 1);
      showChosen();
      $("beside").focus();
    } }, "×"))));
  $("beside").placeholder = beside.length ? "and…" : "nobody";
}

function fail(error) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
  $("problem").scrollIntoView({ block: "nearest" });
}

async function guarded(act) {
  $("problem").hidden = true;
  try {
    await act();
  } catch (error) {
    fail(error);
  }
}

async function predictions(items, confidence) {
  const answer = await call("v1/predict", { items, confidence });
  return items.map((item, n) => ({ ...item, ...answer.items[n] }));
}

async function ask() {
  for (const [box, field] of [[workloadBox, $("workload")], [besideBox, $("beside")]]) {
    if (box.settle()) continue;
    field.focus();
    const [told] = await predictions([{ workload: field.value.trim(), platform: platforms[0] }]);
    const like = /Did you mean [^?]*\?/.exec(told.reason || told.error);
    throw new Error(`"${field.value}" is no workload of this model${like ? `. ${like[0]}` : ": choose one of the list."}`);
  }
  const question = ++questions, asked = edits;
  const workload = $("workload").value, platform = $("platform").value;
  const confidence = Number($("confidence").value), corunners = [...beside];
  const company = timelineOf({ then: $("then").value, elapsed: $("elapsed").value, done: $("done").value, future: $("future").checked }, corunners);
  const places = platform === ANYWHERE ? platforms : [platform];
  const found = await predictions(places.map((p) => ({ workload, platform: p, ...company })), confidence);
  if (question !== questions) return;
  if (found.every((one) => one.status === "error")) throw new Error(found[0].error);
  const last = Number.MAX_VALUE;
  found.sort((a, b) => (a.bound_seconds ?? last) - (b.bound_seconds ?? last)
    || (a.runtime_seconds ?? last) - (b.runtime_seconds ?? last));
  const shown = found.slice(0, MOST_ROWS);
  const finite = shown.flatMap((one) => [one.runtime_seconds, one.bound_seconds]).filter((s) => s !== null);
  const longest = Math.max(...finite, 1e-12);
  fill(document.querySelector("#ranked tbody"), ...shown.map((one) => make("tr", {},
    make("th", { scope: "row" }, one.platform),
    make("td", { class: "number" }, duration(one.runtime_seconds)),
    make("td", { class: "number" }, duration(one.bound_seconds)),
    make("td", {}, bars(one.runtime_seconds, one.bound_seconds, longest)),
    make("td", {}, badge(one.status), make("div", { class: "quiet" }, one.reason || one.error || "")),
    make("td", {}, make("button", { type: "button", "aria-label": `Why, on ${one.platform}`,
      onclick: () => guarded(() => why({ workload, platform: one.platform, ...company }, confidence)) }, "Why")))));
  $("more").textContent = found.length > shown.length ? `and ${found.length - shown.length} more platforms` : "";
  const best = found[0], changes = company.stretches ? ", as company changes" : "";
  const with_ = (corunners.length ? `beside ${corunners.join(" and ")}` : "alone") + changes;
  const most = best.bound_seconds === null ? "no bound is valid there at this confidence"
    : `at most ${duration(best.bound_seconds)} with ${100 * confidence}% confidence`;
  $("answer").textContent = `${workload} ${with_} on ${best.platform}: about ${duration(best.runtime_seconds)}, ${most}.`;
  $("why").hidden = true;
  document.body.classList.toggle("outdated", edits !== asked);
  $("outdated").hidden = edits === asked;
  await Promise.all([showMap(), showPairs()]);
}

async function why(one, confidence) {
  const { workload, platform } = one, row = document.querySelector("#ranked tbody tr");
  const { items: [item] } = await call("v1/explain", { items: [one], confidence });
  if (!row.isConnected) return; // of an answer that a newer one has replaced
  $("why-title").textContent = `Why: ${workload} on ${platform}`;
  const parts = item.status !== "ok" ? [make("p", {}, item.error)] : item.tables.filter((part) => part !== "").map((part) =>
    typeof part === "string" ? make("p", {}, part) : make("table", {},
      make("caption", { class: "quiet" }, part.title || ""),
      make("thead", {}, make("tr", {}, ...part.columns.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...part.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell)))))));
  fill($("why-parts"), ...parts);
  $("why").hidden = false;
  $("why").focus();
}

function note(n, shown, what) {
  return n > shown ? `The first ${shown} of ${n} ${what}.` : "";
}

// Of many workloads those of the question, and then the first.
function shownFirst(most) {
  const own = [...new Set([$("workload").value, ...beside])];
  return workloads.length <= most ? workloads : [...own, ...workloads.filter((name) => !own.includes(name))].slice(0, most);
}

async function showMap() {
  const rows = shownFirst(MOST_ROWS), columns = platforms.slice(0, MOST_COLUMNS);
  const items = rows.flatMap((workload) => columns.map((platform) => ({ workload, platform, corunners: beside })));
  const { items: found } = await call("v1/predict", { items });
  const seconds = (r, c) => found[r * columns.length + c].runtime_seconds ?? null;
  const fastest = rows.map((_, r) => Math.min(...columns.map((__, c) => seconds(r, c) ?? Infinity)));
  heat($("map"), rows, columns, (r, c) => (seconds(r, c) === null ? null : seconds(r, c) / fastest[r]),
    (row, column, value) => `${row} on ${column}: ${value.toFixed(2)} times its fastest`);
  $("map-note").textContent = [note(workloads.length, rows.length, "workloads"), note(platforms.length, columns.length, "platforms")].join(" ");
}

async function showPairs() {
  const rows = shownFirst(MOST_COLUMNS), platform = $("pairs-platform").value;
  const alone = rows.map((workload) => ({ workload, platform, corunners: [] }));
  const pairs = rows.flatMap((workload) => rows.map((other) => ({ workload, platform, corunners: [other] })));
  const { items: found } = await call("v1/predict", { items: [...alone, ...pairs] });
  const seconds = (n) => found[n].runtime_seconds ?? NaN;
  heat($("pairs"), rows, rows, (r, c) => seconds(rows.length * (r + 1) + c) / seconds(r),
    (row, column, value) => `${row} beside ${column}: ${value.toFixed(2)} times as long as alone`);
  $("pairs-note").textContent = note(workloads.length, rows.length, "workloads");
}

async function showCoverage() {
  const { days, confidence } = await call("v1/coverage");
  const known = days.filter((day) => day.with_bound > 0);
  const all = known.reduce((sum, day) => sum + day.with_bound, 0);
  const inside = known.reduce((sum, day) => sum + day.within_bound, 0);
  $("coverage-text").textContent = all
    ? `${inside} of ${all} observed runs (${((100 * inside) / all).toFixed(1)}%) ended at or under their bound; ${100 * confidence}% was promised.`
    : "No observed run has come in yet (POST /v1/runs).";
  fill($("coverage"), ...(known.length ? [coverageChart(known, confidence)] : []));
}

async function showFleet() {
  const { nodes } = await call("v1/fleet");
  $("fleet-text").textContent = `${nodes.length} nodes, ${nodes.reduce((sum, node) => sum + node.tenants.length, 0)} tenants.`;
  fill($("fleet"), ...nodes.slice(0, 200).map((node) => {
    const slots = node.slots === null ? "no limit on slots" : `${node.free_slots} of ${node.slots} slots free`;
    const tenants = node.tenants.map((tenant) => make("li", {}, `${tenant.name}${tenant.name === tenant.workload ? "" : ` (${tenant.workload})`} `,
      make("span", { class: "quiet" }, headroom(tenant))));
    const status = node.status === "ok" ? [] : [make("p", { class: "badge bad" }, node.status)];
    return make("li", {}, make("strong", {}, node.name), make("div", { class: "quiet" }, `${node.platform}, ${slots}`),
      ...status, make("ul", { "aria-label": `Tenants of ${node.name}` }, ...tenants));
  }));
}

function headroom(tenant) {
  if (tenant.limit_seconds === undefined || tenant.limit_seconds === null) return "without a limit";
  if (tenant.bound_seconds === null) return `limit ${duration(tenant.limit_seconds)}, no valid bound`;
  const left = 100 * (1 - tenant.bound_seconds / tenant.limit_seconds);
  return `bound ${duration(tenant.bound_seconds)} of ${duration(tenant.limit_seconds)}: ${left.toFixed(0)}% headroom`;
}

async function showVerbs() {
  const openapi = await call("openapi.json");
  verbs = verbsOf(openapi);
  reasons = openapi.info["x-reasons"];
  options($("verb"), Object.keys(verbs));
  showFields();
}

function showFields() {
  const { about, fields, required } = verbs[$("verb").value];
  $("requests").required = required.includes("items");
  $("verb-help").textContent = about;
  fill($("verb-fields"), ...fields.map(([name, schema]) => control(name, schema)));
}

async function askFleet() {
  const { fields } = verbs[$("verb").value], body = {};
  if ($("requests").value.trim()) body.items = requestsOf($("requests").value);
  for (const [name, schema] of fields) {
    const text = $("verb-form").elements[name].value.trim();
    if (text) body[name] = valueOf(text, schema);
  }
  const question = ++fleetQuestions;
  const show = (text, heads = [], rows = []) => {
    $("verb-promise").textContent = text;
    fill(document.querySelector("#verb-answer thead"), make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name))));
    fill(document.querySelector("#verb-answer tbody"), ...rows.map((row) => make("tr", {}, ...heads.map((name) => make("td", {}, row.get(name) ?? "")))));
  };
  show("Asking…");
  try {
    const { items, promise, unknown_names } = await call(`v1/${$("verb").value}`, body);
    if (question !== fleetQuestions) return;
    const rows = items.map((item) => new Map(glance(item, reasons)));
    show([...(unknown_names ?? []), promise ?? ""].join(" "), [...new Set(rows.flatMap((row) => [...row.keys()]))], rows);
  } catch (error) {
    if (question === fleetQuestions) show("");
    throw error;
  }
}

async function start() {
  const { models, trouble } = await call("v1/models");
  if (!models.length) throw new Error(trouble || "no model is served");
  const [model] = models;
  ({ workloads, platforms } = model);
  $("model").textContent = `Model ${model.version} (${model.method}), data ${String(model.data_version).slice(0, 16)}`;
  workloadBox.set(workloads[0]);
  options($("platform"), platforms, "any platform");
  options($("pairs-platform"), platforms);
  if (!$("key-form").hidden) $("workload").focus(); // rather than in a form that goes
  $("key-form").hidden = true;
  showChosen();
  await ask();
  await Promise.all([showCoverage(), showFleet(), showVerbs()]);
}

$("question").addEventListener("input", outdate);
$("question").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(ask);
});
$("verb").addEventListener("change", showFields);
$("verb-form").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(askFleet);
});
$("pairs-platform").addEventListener("change", () => guarded(showPairs));
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("jostle-key", $("key").value);
  guarded(start);
});
guarded(start);

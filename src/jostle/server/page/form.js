// A form made from the schema of an operation: what it asks for is said in one place, the question itself.
import { duration, make } from "./draw.js";

const SHARED = ["items", "fleet", "tenants"];

export function verbsOf(openapi) {
  const found = {};
  for (const [path, { post }] of Object.entries(openapi.paths)) {
    const schema = post?.requestBody?.content["application/json"].schema;
    if (schema?.properties?.fleet) {
      const fields = Object.entries(schema.properties).filter(([name]) => !SHARED.includes(name));
      found[path.slice("/v1/".length)] = { about: post.summary || "", fields, required: schema.required || [] };
    }
  }
  return found;
}

function kindOf(schema) {
  const kinds = (schema.anyOf || [schema]).flatMap((kind) => kind.anyOf || [kind]);
  if (kinds.some((kind) => kind.type === "array")) return { type: "names" };
  return kinds.find((kind) => kind.type !== "null");
}

export function control(name, schema) {
  const kind = kindOf(schema), choices = kind.enum || (kind.type === "boolean" ? ["true", "false"] : null);
  const field = choices
    ? make("select", { name }, ...["", ...choices].map((value) => make("option", { value }, value)))
    : make("input", { name, placeholder: { names: "a, b", object: "name=value, …" }[kind.type] });
  return make("p", {}, make("label", {}, `${name.replaceAll("_", " ")} `, field), " ", make("span", { class: "quiet" }, schema.description || kindOf(schema).description || ""));
}

function parts(text, mark = ",") {
  return text.split(mark).map((part) => part.trim()).filter((part) => part);
}

export function valueOf(text, schema) {
  const kind = kindOf(schema);
  if (kind.type === "names") return parts(text);
  if (kind.type === "object") return Object.fromEntries(parts(text).map((part) => part.split("=").map((word) => word.trim())));
  if (kind.type === "boolean") return text === "true";
  return kind.type === "number" || kind.type === "integer" ? Number(text) : text;
}

export function requestsOf(text) {
  return parts(text).map((part) => {
    const at = part.lastIndexOf("@");
    return at < 0 ? { workload: part } : { workload: part.slice(0, at), deadline: part.slice(at + 1) };
  });
}

const UNITS = { ms: 1e-3, s: 1, "": 1, min: 60, h: 3600 };

export function seconds(text) {
  const [, number, unit] = /^([0-9.]+)\s*(ms|s|min|h|)$/.exec(text.trim()) || [];
  if (!Number.isFinite(Number.parseFloat(number))) throw new Error(`"${text}" is no time: write for instance 90s or 2min.`);
  return Number(number) * UNITS[unit];
}

// What a question says of company that changes: "2min: sort, fft; 5min:" after the co-runners it begins with.
export function timelineOf({ then, elapsed, done, future }, corunners) {
  const later = parts(then, ";").map((part) => {
    const [start, names = ""] = part.split(":");
    return { start_seconds: seconds(start), corunners: parts(names) };
  });
  if (!later.length && !elapsed.trim() && !done.trim() && !future) return { corunners };
  return {
    stretches: [{ start_seconds: 0, corunners }, ...later], future,
    ...(elapsed.trim() ? { elapsed_seconds: seconds(elapsed) } : {}),
    ...(done.trim() ? { done_ratio: Number(done) } : {}),
  };
}

// What an item says at a glance: its plain values, and of a list the first names and how many there are.
// reasons: a sentence for each code of a reason.
export function glance(item, reasons = {}) {
  return Object.entries(item).map(([key, value]) => [reasons[key] ?? key.replaceAll("_", " "), cell(key, value, reasons)]);
}

const MOST_NAMES = 3;

function cell(key, value, reasons) {
  if (value === null) return "";
  if (key === "reason") return reasons[value] ?? value;
  if (Array.isArray(value)) {
    const names = value.slice(0, MOST_NAMES).map((entry) => nameOf(entry, reasons)), rest = value.length - names.length;
    return names.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  }
  if (typeof value === "object") return glance(value, reasons).filter(([, text]) => text !== "").map((pair) => pair.join(": ")).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value;
  if (/(^|_)seconds$/.test(key)) return duration(value);
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(4)));
}

function nameOf(entry, reasons) {
  if (entry === null || typeof entry !== "object") return String(entry);
  const name = entry.node ?? entry.name ?? entry.request ?? entry.tenant ?? Object.values(entry).find((value) => typeof value === "string");
  const safe = entry.safe === undefined ? "" : entry.safe ? " (yes)" : " (no)";
  const bound = entry.bound_seconds === null ? `: ${reasons[entry.reason] ?? entry.reason ?? "no bound"}` : `: ${duration(entry.bound_seconds)} at most`;
  return `${name ?? "…"}${safe}${"bound_seconds" in entry ? bound : ""}`;
}

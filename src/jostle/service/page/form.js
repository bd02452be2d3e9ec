// A form made from the schema of an operation: what it asks for is said in one place, the question itself.
import { make } from "./draw.js";

const SHARED = ["items", "fleet", "tenants"];

export function verbsOf(openapi) {
  const found = {};
  for (const [path, { post }] of Object.entries(openapi.paths)) {
    const schema = post?.requestBody?.content["application/json"].schema;
    if (schema?.properties?.fleet) {
      const fields = Object.entries(schema.properties).filter(([name]) => !SHARED.includes(name));
      found[path.slice("/v1/".length)] = { about: post.summary || "", fields };
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
  return make("p", {}, make("label", {}, `${name} `, field), " ", make("span", { class: "quiet" }, schema.description || ""));
}

function parts(text) {
  return text.split(",").map((part) => part.trim()).filter((part) => part);
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

// What an item says at a glance: its plain values, and how many there are of what is a list.
export function glance(item) {
  return Object.entries(item).map(([key, value]) => {
    if (Array.isArray(value)) return [key, value.length];
    if (value !== null && typeof value === "object") return [key, glance(value).map((pair) => pair.join(": ")).join(", ")];
    return [key, value === null ? "" : value];
  });
}

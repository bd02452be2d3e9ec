// A search box over many names, by keys or by clicks: a combobox with a list, as WAI-ARIA describes it.
import { fill, make } from "./draw.js";

const MOST = 12;

// Names that have all words of the text in them: first those that begin with it, each kind in their order.
export function matches(names, text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word);
  const fits = names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  const begins = (name) => words.length > 0 && name.toLowerCase().startsWith(words[0]);
  return [...fits.filter(begins), ...fits.filter((name) => !begins(name))];
}

// input: inside a label. list: an empty ul beside it. choose: is called with each name that is chosen. last: is
// called where Backspace is pressed in an empty box. Only a choice counts: whatever else was typed is put back.
export function searchBox(input, list, { names, choose, last = () => {}, keeps = false }) {
  let shown = [], at = -1, chosen = input.value;
  const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, autocomplete: "off" };
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
  list.setAttribute("role", "listbox");

  function close() {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function take(name) {
    chosen = keeps ? name : "";
    input.value = chosen;
    close();
    choose(name);
  }
  function draw() {
    [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === at)));
    if (at < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  }
  function open(text) {
    const found = matches(names(), text);
    shown = found.slice(0, MOST);
    at = text && shown.length ? 0 : -1;
    const items = shown.map((name, n) => {
      const item = make("li", { role: "option", id: `${list.id}-${n}` }, name);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(name);
      });
      return item;
    });
    const more = found.length - shown.length, told = more ? `and ${more} more: type on` : found.length ? "" : "no such name";
    fill(list, ...items, ...(told ? [make("li", { class: "quiet", role: "presentation" }, told)] : []));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    draw();
  }
  input.addEventListener("input", () => open(input.value));
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && open(""));
  input.addEventListener("blur", () => {
    input.value = chosen;
    close();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (list.hidden) open("");
      at = (at + step + shown.length + (at < 0 && step < 0 ? 1 : 0)) % Math.max(shown.length, 1);
      draw();
    } else if (event.key === "Enter" && !list.hidden && at >= 0) {
      event.preventDefault();
      take(shown[at]);
    } else if (event.key === "Enter" && input.value !== chosen) {
      event.preventDefault();
    } else if (event.key === "Escape") {
      input.value = chosen;
      close();
    } else if (event.key === "Backspace" && !input.value) {
      last();
    }
  });
  close();
  return (name) => {
    chosen = name;
    input.value = name;
  };
}

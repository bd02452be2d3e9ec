// A search box over many names, by keys or by clicks: a combobox with a list, as WAI-ARIA describes it.
import { fill, make } from "./draw.js";

const MOST = 12;

// Names that have all words of the text in them: first the text itself, then those that begin with it, in order.
export function matches(names, text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word);
  const fits = names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  const begins = (name) => words.length > 0 && name.toLowerCase().startsWith(words[0]);
  const group = (name) => (name === text.trim() ? 0 : begins(name) ? 1 : 2);
  return [0, 1, 2].flatMap((wanted) => fits.filter((name) => group(name) === wanted));
}

// input: inside a label. list: an empty ul beside it. choose: is called with each name that is chosen. last: is
// called where Backspace is pressed in an empty box. A whole name that was typed counts as chosen once the box is
// left; what is no name stays and is marked. Returns settle, which says whether the box holds no unknown name, and
// set, which puts a name in.
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
  function set(name) {
    chosen = name;
    input.value = name;
    mark(false);
  }
  function mark(unknown) {
    input.setAttribute("aria-invalid", String(unknown));
    input.title = unknown ? "no such name" : "";
  }
  function take(name) {
    set(keeps ? name : "");
    close();
    choose(name);
  }
  function settle() {
    const text = input.value.trim();
    if (!text && keeps) set(chosen);
    else if (text && text !== chosen && names().includes(text)) take(text);
    else mark(text !== chosen);
    close();
    return input.getAttribute("aria-invalid") !== "true";
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
    list.style.left = "0";
    const over = list.getBoundingClientRect().right + 8 - document.documentElement.clientWidth;
    if (over > 0) list.style.left = `${-over}px`;
    input.setAttribute("aria-expanded", "true");
    draw();
  }
  input.addEventListener("input", () => {
    mark(false);
    open(input.value);
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => list.hidden && open(""));
  // The button asks, and settles both boxes first: nothing moves under a finger that is on it.
  input.addEventListener("blur", (event) => (event.relatedTarget?.id === "ask" ? close() : settle()));
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (list.hidden) open("");
      at = (at + step + shown.length + (at < 0 && step < 0 ? 1 : 0)) % Math.max(shown.length, 1);
      draw();
    } else if (event.key === "Enter" && !list.hidden && at >= 0) {
      if (!keeps || shown[at] !== input.value.trim()) event.preventDefault();
      take(shown[at]);
    } else if (event.key === "Enter" && input.value !== chosen) {
      event.preventDefault();
      settle();
    } else if (event.key === "Escape") {
      set(chosen);
      close();
    } else if (event.key === "Backspace" && !input.value) {
      last();
    }
  });
  close();
  return { settle, set };
}

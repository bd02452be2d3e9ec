// Parts of the page. Whatever comes from the service goes in as text, never as markup.

export function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "circle", "line", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "none";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (seconds >= size || unit === "µs") return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  }
}

const BADGES = { guaranteed: "good", calibrated: "good", none: "bad" };

export function badge(status) {
  return make("span", { class: `badge ${BADGES[status] || "none"}` }, status);
}

export function bars(predicted, bound, longest) {
  const label = `predicted ${duration(predicted)}, bound ${duration(bound)}`;
  const box = make("div", { class: "bar", role: "img", "aria-label": label });
  for (const [kind, seconds] of [["bound", bound], ["predicted", predicted]]) {
    if (seconds === null) continue;
    const part = make("span", { class: kind });
    part.style.width = `${Math.max(0.5, Math.min(100, (100 * seconds) / longest))}%`;
    box.append(part);
  }
  return box;
}

// A colour from pale yellow to deep orange; text on it stays dark.
function colour(share) {
  return `hsl(${52 - 37 * share} 95% ${90 - 36 * share}%)`;
}

export function heat(table, rows, columns, valueOf, nameOf) {
  const head = make("tr", {}, make("td"), ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row, r) => {
    const cells = columns.map((column, c) => {
      const value = valueOf(r, c);
      if (value === null || !Number.isFinite(value)) {
        return make("td", { class: "none", "aria-label": `${row}, ${column}: no answer` }, "–");
      }
      const text = value < 10 ? value.toFixed(1) : String(Math.round(value));
      const cell = make("td", { title: nameOf(row, column, value) }, text);
      cell.style.background = colour(Math.min(1, Math.max(0, Math.log(value) / Math.log(8))));
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, row), ...cells);
  });
  fill(table, make("thead", {}, head), make("tbody", {}, ...body));
}

export function coverageChart(days, wanted) {
  const width = 900, height = 190, left = 44, bottom = 24;
  const x = (n) => left + ((width - left - 12) * (days.length === 1 ? 0.5 : n / (days.length - 1)));
  const share = (day) => day.within_bound / day.with_bound;
  const least = Math.min(wanted, ...days.map(share)) - 0.05;
  const y = (value) => 10 + ((height - bottom - 10) * (1 - value)) / (1 - Math.max(0, least));
  const spoken = days.map((day) => `${day.day}: ${(100 * share(day)).toFixed(1)}% of ${day.with_bound}`);
  const label = `Coverage by day, wanted ${100 * wanted}%. ${spoken.slice(-10).join("; ")}`;
  const chart = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  chart.append(make("line", { class: "wanted", x1: left, x2: width - 12, y1: y(wanted), y2: y(wanted) }));
  chart.append(make("text", { x: 4, y: y(wanted) + 4 }, `${100 * wanted}%`));
  const path = days.map((day, n) => `${n ? "L" : "M"}${x(n)} ${y(share(day))}`).join("");
  chart.append(make("path", { class: "line", d: path }));
  days.forEach((day, n) => {
    chart.append(make("circle", { cx: x(n), cy: y(share(day)), r: 4 }, make("title", {}, spoken[n])));
  });
  chart.append(make("text", { x: left, y: height - 4 }, days[0].day));
  if (days.length > 1) {
    chart.append(make("text", { x: width - 12, y: height - 4, "text-anchor": "end" }, days.at(-1).day));
  }
  return chart;
}

"use strict";
// Shared by all pages: theme, charts, controls, tables. A page calls `onTheme(work)` for what must be drawn again in other colours.
const root = document.documentElement;
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

// -- theme ---------------------------------------------------------------------------------------------------
const themed = [];
function onTheme(work) {
  themed.push(work);
}
root.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  for (const work of themed) work();
});

// -- numbers and colours -------------------------------------------------------------------------------------
function colour(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

function visible(shade) {  // black cannot be seen on a dark page
  return shade === "#000000" ? colour("--ink") : shade;
}

function digits(value) {
  return Number(value.toPrecision(4)).toLocaleString("en");
}

// -- charts --------------------------------------------------------------------------------------------------
function chartConfig() {
  const ink = colour("--ink"), grid = colour("--line");
  return { font: "system-ui, sans-serif", view: { stroke: null },
    axis: { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: grid, tickColor: grid, gridOpacity: 0.5,
      labelFontSize: 12, labelOverlap: "greedy", labelSeparation: 6, titleFontSize: 13, titleFontWeight: "normal" } };
}

// The chart of a figure ({ plot }) anew; what was drawn meanwhile wins. Expressions are interpreted and styles are those of the
// style sheet, so that a page may forbid `eval` and inline styles.
async function embed(figure, spec) {
  const number = (figure.number = (figure.number || 0) + 1);
  const holder = document.createElement("div");
  holder.className = "chart";
  figure.plot.replaceChildren(holder);
  const result = await window.vegaEmbed(holder, { width: "container", background: null, config: chartConfig(), ...spec },
    { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } });
  if (figure.number !== number) result.finalize();
  else {
    if (figure.view) figure.view.finalize();
    figure.view = result.view;
    figure.plot.dataset.drawn = String(number);
  }
}

// -- elements ------------------------------------------------------------------------------------------------
// What is shown becomes text, never markup.
function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function legendMark(holder, shade) {
  holder.style.setProperty("--colour", shade === "#000000" ? "var(--ink)" : shade);
  return holder;
}

// -- tables --------------------------------------------------------------------------------------------------
function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) || /^[A-Za-z]/.test(text) ? text.toLowerCase() : number;
}

// Sort the rows by the column that is chosen, if one is.
function sortRows(table) {
  const heads = [...table.querySelectorAll("th")];
  const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
  if (column < 0) return;
  const down = heads[column].getAttribute("aria-sort") === "descending";
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [p, q] = [valueOf(a, column), valueOf(b, column)];
    const order = typeof p === typeof q ? (p < q ? -1 : p > q ? 1 : 0) : typeof p === "number" ? -1 : 1;
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

function makeSortable(table) {
  for (const head of table.querySelectorAll("th")) {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortRows(table);
    });
  }
}
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);

"use strict";
const everything = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
const drawn = new Map();

// -- theme ---------------------------------------------------------------------------------------------------
function setTheme(theme) {
  root.dataset.theme = theme;
  for (const figure of drawn.values()) if (figure.visible) draw(figure);
}
root.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));

// -- figures -------------------------------------------------------------------------------------------------
function colour(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

function colourOf(line) {  // black cannot be seen on a dark page
  return line.colour === "#000000" ? colour("--ink") : line.colour;
}

function specOf(figure) {
  const { data, state } = figure;
  const gap = state.y === "gap";
  const [mean, low, high] = gap ? ["gap", "gap_low", "gap_high"] : ["loss", "low", "high"];
  const logX = state.logX, logY = state.logY && !gap;
  const shown = data.lines.filter((line) => !state.hidden.has(line.label)).map((line) => line.label);
  const rows = data.rows.filter((row) => shown.includes(row.line) && row[mean] !== undefined
    && (!logX || row[state.x] > 0) && (!logY || row[mean] > 0));
  const floor = logY ? Math.min(...rows.map((row) => row[mean])) / 2 : 0;
  const points = logY ? rows.map((row) => ({ ...row, [low]: Math.max(row[low], floor) })) : rows;
  const scale = {
    domain: data.lines.map((line) => line.label),
    range: data.lines.map(colourOf),
  };
  const x = { field: state.x, type: "quantitative", title: data.axes[state.x],
    scale: logX ? { type: "log", nice: false } : { type: "linear", zero: false, nice: false } };
  const yTitle = gap ? `paired difference to ${data.first}` : data.loss;
  const yScale = logY ? { type: "log", nice: false } : { type: "linear", zero: false };
  if (!logY && !gap && data.kind === "boosting" && points.length) {  // the first iterations would hide the end
    const ends = shown.map((label) => points.filter((row) => row.line === label).at(-1)).filter(Boolean).map((row) => row.loss);
    const middle = ends.sort((a, b) => a - b)[Math.floor(ends.length / 2)];
    yScale.domain = [0.85 * Math.min(...ends), 2 * middle];
  }
  const encode = (field) => ({ field, type: "quantitative", title: yTitle, scale: yScale });
  const stroke = { field: "line", type: "nominal", scale, legend: null };
  const dash = { field: "line", type: "nominal", legend: null,
    scale: { domain: scale.domain, range: data.lines.map((line) => DASHES[line.dash % DASHES.length]) } };
  const tooltip = [{ field: "line", title: "line" }, { field: state.x, title: data.axes[state.x], format: ",.5~g" },
    { field: mean, title: "mean", format: ",.4~g" }, { field: low, title: "from", format: ",.4~g" },
    { field: high, title: "to", format: ",.4~g" }];
  const ink = colour("--ink"), grid = colour("--line");
  return {
    width: "container", height: 360, background: null, data: { values: points },
    layer: [
      { mark: { type: "area", opacity: 0.18, clip: true }, encoding: { x, y: encode(low), y2: { field: high }, color: stroke } },
      { mark: { type: "line", clip: true, strokeWidth: 2 }, params: [{ name: "zoom", select: "interval", bind: "scales" }],
        encoding: { x, y: encode(mean), color: stroke, strokeDash: dash } },
      { mark: { type: "point", size: 60, filled: true, clip: true },
        params: [{ name: "near", select: { type: "point", on: "pointerover", nearest: true, clear: "pointerout" } }],
        encoding: { x, y: encode(mean), color: stroke, tooltip,
          opacity: { condition: { param: "near", empty: false, value: 1 }, value: 0 } } },
    ],
    config: { font: "system-ui, sans-serif", view: { stroke: null },
      axis: { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: grid, tickColor: grid, gridOpacity: 0.5,
        labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal" } },
  };
}

async function draw(figure) {
  figure.visible = true;
  const number = (figure.number = (figure.number || 0) + 1);
  const holder = document.createElement("div");
  holder.style.width = "100%";
  figure.plot.replaceChildren(holder);
  const result = await window.vegaEmbed(holder, specOf(figure), { actions: false, renderer: "svg" });
  if (figure.number !== number) result.finalize();
  else { figure.view = result.view; figure.plot.dataset.drawn = String(number); }
}

function control(figure, kind, label, apply) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.className = "axis";
  button.dataset.control = kind;
  button.addEventListener("click", () => { apply(button); draw(figure); });
  return button;
}

function toggle(figure, kind, label, key) {
  const button = control(figure, kind, label, () => {
    figure.state[key] = !figure.state[key];
    button.setAttribute("aria-pressed", figure.state[key]);
  });
  button.setAttribute("aria-pressed", figure.state[key]);
  return button;
}

function choice(figure, kind, label, key, options) {
  const holder = document.createElement("label");
  const select = document.createElement("select");
  for (const [value, text] of options) select.add(new Option(text, value));
  select.dataset.control = kind;
  select.value = figure.state[key];
  select.addEventListener("change", () => { figure.state[key] = select.value; draw(figure); });
  holder.className = "axis";
  holder.append(`${label} `, select);
  return holder;
}

function controls(figure) {
  const { data, state } = figure;
  const legend = document.createElement("div");
  legend.className = "legend";
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "Lines shown");
  for (const line of data.lines) {
    const button = control(figure, "line", line.label, () => {
      if (state.hidden.has(line.label)) state.hidden.delete(line.label); else state.hidden.add(line.label);
      button.setAttribute("aria-pressed", !state.hidden.has(line.label));
    });
    button.className = "";
    button.style.setProperty("--colour", line.colour === "#000000" ? "var(--ink)" : line.colour);
    button.setAttribute("aria-pressed", "true");
    legend.append(button);
  }
  const axes = choice(figure, "x", "against", "x", Object.entries(data.axes));
  const values = choice(figure, "y", "show", "y", [["loss", data.loss], ["gap", `paired difference to ${data.first}`]]);
  figure.bar.append(legend, values, axes, toggle(figure, "log-x", "log x", "logX"), toggle(figure, "log-y", "log y", "logY"),
    control(figure, "reset", "reset zoom", () => {}));
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const figure = drawn.get(entry.target.dataset.figure);
    if (entry.isIntersecting && !figure.visible) draw(figure);
  }
}, { rootMargin: "400px" });

for (const element of document.querySelectorAll("[data-figure]")) {
  const data = everything[element.dataset.figure];
  const boosting = data.kind === "boosting";
  const figure = { data, plot: element.querySelector(".plot"), bar: element.querySelector(".controls"), visible: false,
    state: { hidden: new Set(), x: boosting ? "seconds" : "step", y: "loss", logX: !boosting || data.wide, logY: !boosting } };
  drawn.set(element.dataset.figure, figure);
  if (!data.lines.length) { figure.plot.textContent = "Nothing of this experiment has been computed yet."; continue; }
  controls(figure);
  seen.observe(element);
}
function drawRest() {  // one after the other while nothing else is to do, so that a print shows all of them
  const next = [...drawn.values()].find((figure) => !figure.visible && figure.data.lines.length);
  if (next) draw(next).then(() => idle(drawRest));
}
const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
window.addEventListener("load", () => idle(drawRest));

// -- tables --------------------------------------------------------------------------------------------------
function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) || /^[A-Za-z]/.test(text) ? text.toLowerCase() : number;
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th").forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [p, q] = [valueOf(a, column), valueOf(b, column)];
        const order = typeof p === typeof q ? (p < q ? -1 : p > q ? 1 : 0) : typeof p === "number" ? -1 : 1;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

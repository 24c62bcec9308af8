"use strict";
const everything = JSON.parse(document.getElementById("data").textContent);
const drawn = new Map();

onTheme(() => {
  for (const figure of drawn.values()) if (figure.visible) draw(figure);
});

// -- figures -------------------------------------------------------------------------------------------------
function specOf(figure) {
  const { data, state } = figure;
  const gap = state.y === "gap";
  const [mean, low, high] = gap ? ["gap", "gap_low", "gap_high"] : ["loss", "low", "high"];
  const logX = state.logX, logY = state.logY && !gap;
  const shown = data.lines.filter((line) => !state.hidden.has(line.label)).map((line) => line.label);
  const rows = data.rows.filter((row) => shown.includes(row.line) && row[mean] !== undefined
    && (!logX || row[state.x] > 0) && (!logY || row[mean] > 0));
  const floor = logY ? Math.min(...rows.map((row) => row[mean])) / 2 : 0;
  const points = rows.map((row) => ({ ...row, [low]: logY && low in row ? Math.max(row[low], floor) : row[low],
    interval: low in row ? `${digits(row[low])} to ${digits(row[high])}` : "too few runs" }));
  const scale = {
    domain: data.lines.map((line) => line.label),
    range: data.lines.map((line) => visible(line.colour)),
  };
  const x = { field: state.x, type: "quantitative", title: data.axes[state.x],
    scale: logX ? { type: "log", nice: false } : { type: "linear", zero: false, nice: false } };
  const yTitle = gap ? `paired difference to ${data.first}` : data.loss;
  const yScale = logY ? { type: "log", nice: false } : { type: "linear", zero: false };
  if (!logY && !gap && data.falls && points.length) {  // the first iterations would hide the end
    const ends = shown.map((label) => points.filter((row) => row.line === label).at(-1)).filter(Boolean).map((row) => row.loss);
    const middle = ends.sort((a, b) => a - b)[Math.floor(ends.length / 2)];
    yScale.domain = [0.85 * Math.min(...ends), 2 * middle];
  }
  const encode = (field) => ({ field, type: "quantitative", title: yTitle, scale: yScale });
  const stroke = { field: "line", type: "nominal", scale, legend: null };
  const dash = { field: "line", type: "nominal", legend: null,
    scale: { domain: scale.domain, range: data.lines.map((line) => DASHES[line.dash % DASHES.length]) } };
  const tooltip = [{ field: "line", title: "line" }, { field: state.x, title: data.axes[state.x], format: ",.5~g" },
    { field: mean, title: "mean", format: ",.4~g" }, { field: "interval", title: "95 % interval" }];
  return {
    height: 360, data: { values: points },
    layer: [
      { transform: [{ filter: `isValid(datum["${low}"])` }], mark: { type: "area", opacity: 0.18, clip: true },
        encoding: { x, y: encode(low), y2: { field: high }, color: stroke } },
      { mark: { type: "line", clip: true, strokeWidth: 2 }, params: [{ name: "zoom", select: "interval", bind: "scales" }],
        encoding: { x, y: encode(mean), color: stroke, strokeDash: dash } },
      { mark: { type: "point", size: 60, filled: true, clip: true },
        params: [{ name: "near", select: { type: "point", on: "pointerover", nearest: true, clear: "pointerout" } }],
        encoding: { x, y: encode(mean), color: stroke, tooltip,
          opacity: { condition: { param: "near", empty: false, value: 1 }, value: 0 } } },
    ],
  };
}

function draw(figure) {
  figure.visible = true;
  return embed(figure, specOf(figure));
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
    const button = control(figure, "line", line.title, () => {
      if (state.hidden.has(line.label)) state.hidden.delete(line.label); else state.hidden.add(line.label);
      button.setAttribute("aria-pressed", !state.hidden.has(line.label));
    });
    button.className = "";
    legendMark(button, line.colour);
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
  const figure = { data, plot: element.querySelector(".plot"), bar: element.querySelector(".controls"), visible: false,
    state: { hidden: new Set(), x: "step", y: "loss", logX: !data.falls || data.wide, logY: !data.falls } };
  drawn.set(element.dataset.figure, figure);
  if (!data.lines.length) {
    figure.plot.textContent = "Nothing of this experiment has been computed yet.";
    figure.plot.style.minHeight = "0";
    continue;
  }
  controls(figure);
  seen.observe(element);
}
function drawRest() {  // one after the other while nothing else is to do, so that a print shows all of them
  const next = [...drawn.values()].find((figure) => !figure.visible && figure.data.lines.length);
  if (next) draw(next).then(() => idle(drawRest));
}
const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
window.addEventListener("load", () => idle(drawRest));

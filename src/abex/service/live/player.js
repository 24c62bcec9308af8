"use strict";
// One player: counts, arms, the two charts.
const figures = { shares: { plot: document.getElementById("shares") }, earned: { plot: document.getElementById("earned") } };
const AREAS = page.colours.filter((shade) => shade !== "#000000");  // a black area would hide the page
const MOST_AREAS = 60;
let timeline = null;

function whole(value) {
  return Math.round(value).toLocaleString("en");
}

function percent(value) {  // a decimal where it says something: near 0 and near 100
  if (value === null) return "–";
  const shown = 100 * value, rest = Math.min(shown, 100 - shown);
  return `${shown.toFixed(rest >= 0.05 && rest < 9.95 ? 1 : 0)} %`;
}

function decimalsOf(low, high) {  // as many as an interval leaves two digits of its width
  return high > low ? Math.min(Math.max(1 - Math.floor(Math.log10(high - low)), 0), 4) : 3;
}

function fine(value, decimals = 3) {
  return value === null ? "–" : Math.abs(value) < 1000 ? value.toFixed(decimals) : digits(value);
}

function sum(value) {
  return value === null ? "–" : Math.abs(value) < 1000 ? digits(value) : whole(value);
}

function counted(number, thing) {
  return `${whole(number)} ${thing}${number === 1 ? "" : "s"}`;
}

// -- counts --------------------------------------------------------------------------------------------------
function showTile(name, value, about = "") {
  const tiles = document.getElementById("tiles");
  let tile = [...tiles.children].find((one) => one.dataset.tile === name);
  if (!tile) {
    tile = element("div", "", { "data-tile": name });
    tile.append(element("dt", name), element("dd"));
    tiles.append(tile);
  }
  const shown = tile.querySelector("dd");
  shown.textContent = value;
  if (about) shown.append(element("small", about));
}

function showSpeed(speed) {
  showTile("events per second", speed >= 10 || speed === 0 ? whole(speed) : speed.toFixed(1));
}

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
function span(seconds) {  // 86400 is a day, 5400 an hour and 30 minutes
  const words = [];
  let rest = seconds;
  for (const [unit, size] of UNITS) {
    const count = size === 1 ? rest : Math.floor(rest / size);
    rest -= count * size;
    if (count) words.push(count === 1 ? `${unit === "hour" ? "an" : "a"} ${unit}` : `${digits(count)} ${unit}s`);
  }
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0] || "no time";
}

function showSummary(told) {
  const several = told.conversions === "first" ? "" : `, the ${told.conversions} of its conversions counts`;
  const expiry = told.window !== null ? `silence counts by its age, in full after ${span(told.window)}${several}`
    : told.expire === null ? "decisions never expire" : `decisions expire after ${span(told.expire)}`;
  document.getElementById("about").textContent =
    `${told.policy} · ${counted(told.n_arms, "arm")} · rewards from ${told.rewards[0]} to ${told.rewards[1]} · ${expiry}`;
  showTile("decisions", whole(told.decisions));
  showTile("rewarded", whole(told.rewarded));
  showTile("open", whole(told.waiting));
  showTile(told.window === null ? "expired" : "silent", whole(told.expired));
  if (told.late) showTile("late", whole(told.late), "came too late and were not learned");
  if (told.corrected) showTile("corrected", whole(told.corrected));
  showArms(told);
}

// -- arms ----------------------------------------------------------------------------------------------------
const WINDOWED = ["answer is in", "still wait", "conversions"];  // columns of players with a window
const COLUMNS = ["arm", "pulls", "mean", "95 % interval", "probability now", "of the last 1,000", ...WINDOWED];
const rows = new Map();

function keyOf(arm) {  // 1 and "1" are two arms
  return JSON.stringify(arm);
}

function rowOf(arm) {
  const key = keyOf(arm);
  if (!rows.has(key)) {
    const row = element("tr");
    for (const column of COLUMNS) row.append(element("td", "", { "data-column": column, class: WINDOWED.includes(column) ? "windowed" : "" }));
    const range = element("span", "", { class: "range", "aria-hidden": "true" });
    range.append(element("i"), element("b"));
    row.cells[0].append(element("span", "", { class: "mark", "aria-hidden": "true" }), element("span", String(arm)));
    row.cells[3].append(element("span"), range);
    rows.set(key, row);
  }
  return rows.get(key);
}

function showArms(told) {
  const table = document.getElementById("arms");
  table.classList.toggle("windows", told.window !== null);
  const seen = told.arms.filter((one) => one.mean !== null);
  const low = Math.min(...seen.map((one) => one.low)), high = Math.max(...seen.map((one) => one.high));
  const kept = new Set(told.arms.map((one) => keyOf(one.arm)));
  for (const [key, row] of rows) if (!kept.has(key)) { row.remove(); rows.delete(key); }
  for (const one of told.arms) {
    const row = rowOf(one.arm), [, pulls, mean, interval, chance, recent, mature, pending, conversions] = row.cells;
    pulls.textContent = whole(one.pulls);
    if (told.window !== null) {
      mature.textContent = whole(one.mature);
      pending.textContent = whole(one.pending);
      conversions.textContent = whole(one.conversions);
    }
    const decimals = one.mean === null ? 0 : decimalsOf(one.low, one.high);
    mean.textContent = fine(one.mean, decimals);
    interval.firstChild.textContent = one.mean === null ? "–" : `${fine(one.low, decimals)} to ${fine(one.high, decimals)}`;
    chance.textContent = percent(one.probability);
    recent.textContent = percent(one.recent_share);
    const range = interval.lastChild, share = (value) => `${high > low ? (100 * (value - low)) / (high - low) : 0}%`;
    range.hidden = one.mean === null;
    if (one.mean !== null) {
      range.firstChild.style.left = share(one.low);
      range.firstChild.style.right = `calc(100% - ${share(one.high)})`;
      range.lastChild.style.left = `calc(${share(one.mean)} - 1px)`;
    }
    table.tBodies[0].append(row);
  }
  sortRows(table);
  markArms();
  const hidden = told.n_arms > told.shown ? `The ${whole(told.shown)} of ${whole(told.n_arms)} arms chosen most. ` : "";
  document.getElementById("arms-note").textContent =
    hidden + (told.probabilities_unknown ? `Probabilities are not known: ${told.probabilities_unknown}.` : "");
}

// -- charts --------------------------------------------------------------------------------------------------
function areaColour(place) {  // a second round is lighter
  const shade = AREAS[place % AREAS.length];
  return place < AREAS.length ? shade : `color-mix(in srgb, ${shade} 55%, white)`;
}

// An arm that is called like a colour has it; the others take turns with what does not look like one of these.
const NO_COLOURS = /text$|^(accent|button|canvas|current|field|highlight|mark|selected|transparent)/i;  // but words of the system
const colours = new Map();  // by arm: what one has had once stays
const ALIKE = 25;  // degrees of hue between colours that have one name
let turns = 0;
function isColour(arm) {
  return /^[a-z]+$/i.test(arm) && !NO_COLOURS.test(arm) && CSS.supports("color", arm) && !CSS.supports("width", arm);
}

function colourOf(arm) {
  const key = keyOf(arm);
  if (!colours.has(key)) colours.set(key, isColour(arm) ? arm.toLowerCase() : nextColour());
  return colours.get(key);
}

function nextColour() {
  const named = timeline.arms.filter(isColour).map(hue);
  const looksNamed = (angle) => named.some((one) => Math.abs((one - angle + 540) % 360 - 180) < ALIKE);
  const last = turns + AREAS.length - 1;  // where all of them look like one
  while (turns < last && looksNamed(hue(areaColour(turns)))) turns++;
  return areaColour(turns++);
}

function hue(shade) {  // in OKLCH, where equal angles look equally far apart; a grey has none
  const parts = resolved(`oklch(from ${shade} l c h)`).match(/[\d.]+/g);
  return Number(parts[2]);
}

function resolved(shade) {  // as Vega knows colours
  const probe = element("i");
  probe.style.color = shade;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  const mixed = found.match(/^color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)/);
  return mixed ? `rgb(${mixed.slice(1).map((part) => Math.round(255 * part)).join(", ")})` : found;
}

function markArms() {  // those that are drawn, and those that will be when they are chosen
  if (!timeline) return;
  const drawn = new Set(timeline.arms.map(keyOf));
  for (const [key, row] of rows) {
    const mark = row.querySelector(".mark");
    if (timeline.others && !drawn.has(key)) mark.style.removeProperty("--colour");
    else legendMark(mark, colourOf(JSON.parse(key)));
  }
}

function endOf(bucket) {  // the last bucket is under way
  return Math.max(bucket.time, Math.min(bucket.time + timeline.bucket_milliseconds, Date.now()));
}

function timeAxis() {
  const span = timeline.buckets.length * timeline.bucket_milliseconds;
  const format = span < 600_000 ? "%H:%M:%S" : span < 172_800_000 ? "%H:%M" : "%d %b";
  return { field: "time", type: "temporal", title: null, scale: { nice: false }, axis: { format, tickCount: 6, grid: false } };
}

// Buckets of time, joined until each has its part of the decisions: a quiet night is no noise.
function sharesRows() {
  const least = timeline.buckets.reduce((sum, one) => sum + one.decisions, 0) / MOST_AREAS, points = [];
  let open = null;
  for (const bucket of timeline.buckets) {
    if (!bucket.decisions) continue;
    const counts = bucket.shares.slice(0, timeline.arms.length + (timeline.others > 0)).map((share) => share * bucket.decisions);
    open = open ? { ...open, n: open.n + bucket.decisions, counts: open.counts.map((one, place) => one + counts[place]) }
      : { time: bucket.time, n: bucket.decisions, counts };
    open.end = endOf(bucket);
    if (open.n >= least) { points.push(open); open = null; }
  }
  if (open) points.push(open);
  if (points.length) points.push({ ...points.at(-1), time: points.at(-1).end });
  return points.flatMap(({ time, n, counts }) => counts.map((count, place) => ({ time, place, share: count / n,
    name: place < timeline.arms.length ? String(timeline.arms[place]) : "others" })));
}

function sharesSpec(places) {
  const shades = places.map((place) => place < timeline.arms.length ? resolved(timeline.colours[place]) : colour("--soft"));
  return {
    height: 220, data: { name: "rows", values: sharesRows() },
    mark: { type: "area", interpolate: "step-after", opacity: 0.85 },
    encoding: {
      x: timeAxis(),
      y: { field: "share", type: "quantitative", stack: "zero", title: "share of decisions", axis: { format: ".0%" }, scale: { domain: [0, 1] } },
      color: { field: "place", type: "nominal", legend: null, scale: { domain: places, range: shades } },
      order: { field: "place", type: "quantitative" },
      tooltip: [{ field: "name", type: "nominal", title: "arm" }],
    },
  };
}

function earnedRows() {
  const first = timeline.buckets[0];
  const start = first ? [{ time: first.time, reward: 0 }] : [];
  return [...start, ...timeline.buckets.map((one) => {
    const [uniform, low, high] = one.uniform || [null, null, null];
    return { time: endOf(one), reward: one.reward, uniform, low, high };
  })];
}

function earnedSpec() {
  const [ours, theirs] = earnedColours();
  const x = timeAxis();
  const y = (field) => ({ field, type: "quantitative", title: "reward so far" });
  const known = [{ filter: "isValid(datum.uniform)" }];
  const words = { x, tooltip: [{ field: "time", type: "temporal", title: "until", format: "%d %b %H:%M:%S" },
    { field: "reward", title: "reward", format: ",.4~g" }, { field: "uniform", title: "uniform choice", format: ",.4~g" },
    { field: "low", title: "at least", format: ",.4~g" }, { field: "high", title: "at most", format: ",.4~g" }] };
  return {
    height: 220, data: { name: "rows", values: earnedRows() },
    layer: [
      ...(timeline.uniform ? [
        { transform: known, mark: { type: "area", opacity: 0.2, color: theirs }, encoding: { x, y: y("low"), y2: { field: "high" } } },
        { transform: known, mark: { type: "line", strokeDash: DASHES[1], color: theirs, strokeWidth: 2 }, encoding: { x, y: y("uniform") } },
      ] : []),
      { mark: { type: "line", color: ours, strokeWidth: 2 }, encoding: { x, y: y("reward") } },
      { mark: { type: "point", size: 60, filled: true, color: ours },
        params: [{ name: "near", select: { type: "point", on: "pointerover", nearest: true, clear: "pointerout" } }],
        encoding: { ...words, y: y("reward"), opacity: { condition: { param: "near", empty: false, value: 1 }, value: 0 } } },
    ],
  };
}

function earnedColours() {
  return [page.colours[0], page.colours[1]];
}

// New rows in the chart that is there; a new chart only where its shape or its colours are others.
async function redraw(figure, shape, spec, points) {
  figure.plot.dataset.points = String(points.length);
  if (!points.length) figure.plot.textContent = "Nothing has happened yet.";
  else if (figure.shape === shape && figure.view) await figure.view.data("rows", points).runAsync();
  else {
    figure.shape = shape;
    await embed(figure, spec());
  }
}

function legend(holder, entries) {
  const text = keyOf(entries);
  if (holder.dataset.shown === text) return;
  holder.dataset.shown = text;
  holder.replaceChildren(...entries.map(([label, shade]) => {
    const entry = element("span");
    entry.append(legendMark(element("i", "", { class: "mark", "aria-hidden": "true" }), shade), element("span", label));
    return entry;
  }));
}

async function showTimeline(told) {
  timeline = told;
  timeline.colours = told.arms.map(colourOf);
  const places = told.arms.map((_, place) => place).concat(told.others ? [told.arms.length] : []);
  const names = told.arms.map((arm, place) => [String(arm), timeline.colours[place]]);
  if (told.others) names.push([`${whole(told.others)} others`, "var(--soft)"]);
  legend(document.getElementById("shares-legend"), names);
  const [ours, theirs] = earnedColours();
  legend(document.getElementById("earned-legend"), [["this player", ours], ["uniform choice, with its 95 % interval", theirs]]);
  markArms();
  const look = [root.dataset.theme, timeAxis().axis.format];
  await redraw(figures.shares, keyOf([look, told.arms, places]), () => sharesSpec(places), sharesRows());
  await redraw(figures.earned, keyOf([look, told.uniform !== null]), earnedSpec, earnedRows());
  showTile("reward", sum(told.reward));
  const [uniform, low, high] = (told.uniform || []).map((value, _, [, first, last]) => fine(value, decimalsOf(first, last)));
  showTile("reward if uniform", uniform || "–", uniform ? `${low} to ${high}` : "");
  document.getElementById("earned-note").textContent =
    told.uniform_unknown ? `What uniform choice would have earned cannot be told: ${told.uniform_unknown}.` : "";
}

function clearPlayer() {
  timeline = null;
  rows.clear();
  colours.clear();
  turns = 0;
  for (const holder of ["tiles", "shares-legend", "earned-legend"]) {
    document.getElementById(holder).replaceChildren();
    delete document.getElementById(holder).dataset.shown;
  }
  document.getElementById("arms").tBodies[0].replaceChildren();
  for (const name of ["about", "arms-note", "winner", "ask-winner-note", "earned-note", "what-if-note"]) document.getElementById(name).textContent = "";
  document.getElementById("what-if-table").hidden = true;
  for (const figure of Object.values(figures)) {
    figure.shape = null;
    figure.plot.replaceChildren();
  }
}
onTheme(() => { if (timeline) showTimeline(timeline); });

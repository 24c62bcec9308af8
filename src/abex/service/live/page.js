"use strict";
// The whole page: which player is looked at, forms, what is new.
const BETWEEN = 1000;  // milliseconds between two looks
const BETWEEN_WINNERS = 5_000;  // and between two questions who has won
const SHOWN = 30;  // arms
const SPEED_LOOKS = 6;  // over which events per second are counted
const LIST_AGAIN = 5000;
const create = document.querySelector("#create form");
let watched = null;  // { name, stop }

for (const policy of page.policies) document.getElementById("policies").append(new Option("", policy));

// -- which player --------------------------------------------------------------------------------------------
function chosen() {
  try {
    return location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : null;
  } catch {
    return null;
  }
}

async function list() {
  const { players, aliases } = await ask("v1/players");
  const splitOf = (split) => Object.entries(split).map(([name, percent]) => `${name} ${percent} %`).join(", ");
  const lines = Object.entries(aliases).map(([name, split]) => `${name} is ${splitOf(split)}`);
  document.getElementById("aliases").textContent = lines.join("; ");
  const links = players.map((one) => {
    const link = element("a", one.name, { href: `#/${encodeURIComponent(one.name)}` });
    link.append(element("small", counted(one.events, "event")));
    const item = element("li");
    item.append(link);
    return item;
  });
  const list = document.getElementById("players");
  const text = keyOf(players);
  if (list.dataset.shown !== text) {
    const focused = [...list.querySelectorAll("a")].findIndex((link) => link === document.activeElement);
    list.replaceChildren(...links);
    list.dataset.shown = text;
    if (focused >= 0 && links[focused]) links[focused].firstChild.focus();
    const { former } = create.elements, before = former.value;
    former.replaceChildren(former.options[0], ...players.map((one) => new Option(one.name, one.name)));
    former.value = players.some((one) => one.name === before) ? before : "";
  }
  document.getElementById("nothing").hidden = players.length > 0;
  document.getElementById("create").open ||= players.length === 0;
  return players;
}

function markCurrent() {
  for (const link of document.querySelectorAll("#players a")) {
    if (watched && link.getAttribute("href") === `#/${encodeURIComponent(watched.name)}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// -- watching ------------------------------------------------------------------------------------------------
function watch(name) {
  if (watched && watched.name === name) return;
  if (watched) watched.stop.abort();
  clearPlayer();
  document.getElementById("player").hidden = name === null;
  watched = name === null ? null : { name, stop: new AbortController() };
  markCurrent();
  document.title = name === null ? "abex" : `abex: ${name}`;
  if (name === null) return;
  document.getElementById("name").textContent = name;
  follow(watched);
}

async function winnerOf(one) {  // where there is one arm alone, nobody wins
  try {
    return (await ask(addressOf(one.name, "/winner"), one.stop.signal)).sentence;
  } catch (error) {
    if (error instanceof Refused) return "";
    throw error;
  }
}

// Once a second: the summary if there was an event, and then the timeline.
async function follow(one) {
  const looks = [];  // [time, number of the last event]
  let asked = -Infinity;  // who won is asked every so often
  let tag = "";
  for (let wait = BETWEEN; !one.stop.signal.aborted; await sleep(wait)) {
    if (document.hidden) continue;
    try {
      const response = await answered(addressOf(one.name, `/summary?limit=${SHOWN}`),
        { signal: one.stop.signal, headers: tag ? { "If-None-Match": tag } : {} });
      const summary = response.status === 304 ? null : await response.json();
      if (watched !== one) return;
      looks.push([performance.now(), summary ? summary.seq : looks.at(-1)[1]]);
      if (looks.length > SPEED_LOOKS) looks.shift();
      const [[then, first], [now, last]] = [looks[0], looks.at(-1)];
      if (summary) {
        showSummary(summary);
        listControls(summary.arms);
      }
      showSpeed(now > then ? (1000 * (last - first)) / (now - then) : 0);
      if (now - asked > BETWEEN_WINNERS && (summary || asked < 0)) {
        asked = now;
        document.getElementById("winner").textContent = await winnerOf(one);
      }
      if (summary) await showTimeline(await ask(addressOf(one.name, "/timeline"), one.stop.signal));
      tag = response.headers.get("ETag");
      tell("");
      wait = BETWEEN;
    } catch (error) {
      if (one.stop.signal.aborted) return;
      const refused = error instanceof Refused;
      tell(refused ? error.message : "The connection to the service was lost; trying again.");
      if (refused && [401, 403, 404].includes(error.status)) { one.stop.abort(); return; }
      wait = Math.min(2 * wait, 10_000);
    }
  }
}

// -- who won -------------------------------------------------------------------------------------------------
const askWinner = document.getElementById("ask-winner");
const verdict = document.getElementById("verdict");

function listControls(arms) {
  const { control } = askWinner.elements, before = control.value;
  control.replaceChildren(control.options[0], ...arms.map((one) => new Option(one.arm, one.arm)));
  control.value = arms.some((one) => String(one.arm) === before) ? before : "";
}

function lift(value, coin, decimals) {  // relative for rewards of 0 and 1, else a difference
  if (value === null) return "";
  return `${value < 0 ? "−" : "+"}${coin ? `${whole(Math.abs(100 * value))} %` : fine(Math.abs(value), decimals)}`;
}

function showVerdict(told) {
  document.getElementById("verdict-sentence").textContent = told.sentence;
  const table = document.getElementById("verdict-table"), heads = [...table.tHead.rows[0].cells];
  for (const head of heads.filter((one) => one.className === "lift")) head.hidden = told.control === null;
  heads[4].textContent = told.coin ? `lift against ${told.control}` : `difference to ${told.control}`;
  table.tBodies[0].replaceChildren(...told.arms.map((one) => {
    const row = element("tr"), [low, high] = one.interval, decimals = decimalsOf(low, high);
    const ends = one.lift_interval && one.lift_interval.map((end) => lift(end, told.coin, decimals)).join(" to ");
    const texts = [String(one.label), whole(one.n), fine(one.rate, decimals), `${fine(low, decimals)} to ${fine(high, decimals)}`,
      ...(told.control === null ? [] : [lift(one.lift, told.coin, decimals), ends || ""]), percent(one.chance_to_be_best)];
    const names = heads.filter((head) => !head.hidden).map((head) => head.textContent);
    row.append(...texts.map((text, column) => element("td", text, { "data-column": names[column] })));
    return row;
  }));
  document.getElementById("verdict-about").textContent = `As of ${new Date().toLocaleTimeString("en-GB")}, wrong in at most `
    + `${digits(100 * told.risk)} % of such experiments however often one looks. Nothing was changed. The chance to be best is a picture and no reason to stop.`;
  verdict.showModal();
}

askWinner.addEventListener("submit", async (event) => {
  event.preventDefault();
  await busy(askWinner.querySelector("[type=submit]"), document.getElementById("ask-winner-note"), async () => {
    const name = watched.name, { value } = askWinner.elements.control;
    const told = await ask(addressOf(name, `/winner${value === "" ? "" : `?control=${encodeURIComponent(value)}`}`));
    if (watched && watched.name === name) showVerdict(told);
  });
});

// -- what if -------------------------------------------------------------------------------------------------
const whatIf = document.getElementById("what-if");
let valued = null;
for (const name of page.estimators) whatIf.elements.estimator.add(new Option(name, name));
whatIf.elements.estimator.value = "doubly robust";

function showValued() {
  const table = document.getElementById("what-if-table");
  table.hidden = !valued;
  if (!valued) return;
  const cells = [["as logged", fine(valued.logged), "", whole(valued.rows), ""]];
  for (const one of valued.policies) {
    const found = (one.estimates || []).find((estimate) => estimate.estimator === whatIf.elements.estimator.value);
    if (!found) cells.push([one.policy, "–", "", "", one.error || "this estimator says nothing here"]);
    else if (found.value === null) cells.push([one.policy, "cannot tell", "", whole(found.effective), found.reason || ""]);
    else {
      const [value, low, high] = [found.value, found.low, found.high].map((number) => fine(number, decimalsOf(found.low, found.high)));
      cells.push([one.policy, value, `${low} to ${high}`, whole(found.effective), found.reason || ""]);
    }
  }
  const heads = [...table.querySelectorAll("th")].map((head) => head.textContent);
  table.tBodies[0].replaceChildren(...cells.map((texts) => {
    const row = element("tr");
    texts.forEach((text, column) => row.append(element("td", text, { "data-column": heads[column] })));
    return row;
  }));
  sortRows(table);
}

whatIf.elements.estimator.addEventListener("change", showValued);
whatIf.addEventListener("submit", async (event) => {
  event.preventDefault();
  const policies = whatIf.elements.policies.value.split("\n").map((line) => line.trim()).filter(Boolean);
  await busy(whatIf.querySelector("[type=submit]"), document.getElementById("what-if-note"), async () => {
    const name = watched.name, found = await send(addressOf(name, "/evaluate"), { policies });
    if (watched && watched.name === name) {
      valued = found;
      showValued();
    }
    return `From ${counted(found.rows, "decision")} that had their reward.`;
  });
});

// -- log, new players ----------------------------------------------------------------------------------------
async function busy(button, note, work) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  note.textContent = "One moment …";
  try {
    note.textContent = (await work()) || "";
  } catch (error) {
    note.textContent = error.message;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

document.getElementById("log").addEventListener("click", async (event) => {
  const format = event.target.dataset.format;
  if (!format || !watched) return;
  try {
    const content = await (await answered(addressOf(watched.name, `/log?format=${format}`))).blob();
    const link = element("a", "", { href: URL.createObjectURL(content), download: `${watched.name}.${format}` });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    tell(error.message);
  }
});

function wanted() {
  const { name, policy, arms, low, high, expire, horizon } = create.elements, span = create.elements.window;
  const names = arms.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const count = names.length === 1 && /^\d{1,9}$/.test(names[0]) ? Number(names[0]) : names;
  const lowest = Number(low.value);
  return { name: name.value.trim(), policy: policy.value.trim(), arms: count, rewards: [lowest, Number(high.value)],
    window: span.value === "" ? null : Number(span.value), expire: expire.value === "" ? null : Number(expire.value), unrewarded: lowest, horizon: horizon.value === "" ? null : Number(horizon.value) };
}
function sayDurations() {  // what a number of seconds is in words
  for (const name of ["window", "expire"]) {
    const { value } = create.elements[name];
    create.elements[`${name}-words`].value = Number(value) > 0 ? span(Number(value)) : "";
  }
}
create.addEventListener("input", sayDurations);
create.addEventListener("reset", () => setTimeout(sayDurations));
sayDurations();
create.addEventListener("submit", async (event) => {
  event.preventDefault();
  await busy(create.querySelector("[type=submit]"), document.getElementById("create-note"), async () => {
    const made = await send("v1/players", wanted()), former = create.elements.former.value;
    if (former) await send(addressOf(made.name, "/learn"), { player: former });
    await list();
    location.hash = `#/${encodeURIComponent(made.name)}`;
    create.reset();
    document.getElementById("create").open = false;
    return made.created ? "" : "There was such a player already.";
  });
});

// -- start ---------------------------------------------------------------------------------------------------
async function start() {
  if (page.keys && !sessionStorage.getItem(KEY)) { askForKey(); return; }
  try {
    const players = await list();
    tell("");
    watched = watched && watched.stop.signal.aborted ? null : watched;
    watch(chosen() ?? (players.length ? players[0].name : null));
  } catch (error) {
    tell(error.message);
  }
}
window.addEventListener("hashchange", () => { if (chosen() !== null) watch(chosen()); });
setInterval(async () => {
  if (document.hidden || !keyForm.hidden) return;
  try {
    await list();
    markCurrent();
    if (!watched) start();
  } catch (error) {
    tell(error.message);
  }
}, LIST_AGAIN);
start();

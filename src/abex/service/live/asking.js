"use strict";
// Asking the service: with the API key of this tab, errors as sentences.
const page = JSON.parse(document.getElementById("data").textContent);
const KEY = "abex-key";

class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

async function answered(address, options = {}) {
  const response = await fetch(address, { ...options, headers: headers(options.headers), cache: "no-store" });
  if (response.ok || response.status === 304) return response;
  let sentence = `the service answered ${response.status}`;
  try {
    sentence = (await response.json()).error || sentence;
  } catch { /* no JSON: the status has to do */ }
  if (response.status === 401) askForKey();
  throw new Refused(response.status, sentence);
}

async function ask(address, signal) {
  return (await answered(address, { signal })).json();
}

async function send(address, body) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await answered(address, options)).json();
}

function addressOf(player, what = "") {
  return `v1/players/${encodeURIComponent(player)}${what}`;
}

function sleep(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}

// -- what went wrong, and the key ----------------------------------------------------------------------------
const trouble = document.getElementById("trouble");
function tell(sentence) {
  trouble.textContent = sentence;
  trouble.hidden = !sentence;
}

const keyForm = document.getElementById("key");
function askForKey() {
  keyForm.hidden = false;
  keyForm.elements.key.focus();
}
keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, keyForm.elements.key.value.trim());
  keyForm.reset();
  keyForm.hidden = true;
  start();
});

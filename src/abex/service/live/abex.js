// A client of `abex serve` for web pages: import {Abex} from "https://shop.example/bandit/page/abex.js"
//   const abex = new Abex("https://shop.example/bandit", key);
//   const choice = await abex.decide("banner", {unit: visitor});
//   button.onclick = () => abex.reward("banner", choice.id, 1);
// What is asked again (a lost connection, 429, 502 to 504) counts once: a decision has a key, and one reward.
export class Abex {
  constructor(address, key, {patience = 30000} = {}) {
    Object.assign(this, {address: address.replace(/\/$/, ""), key, patience});
  }

  /** {id, arm, probability}; a unit gets the same arm until that is rewarded or its time is over. */
  decide(player, {unit, key = random()} = {}) {
    return this.post(player, "decisions", {unit, key});
  }

  /** Whether the reward was the first of its decision, and in time. It is sent although the page is left. */
  async reward(player, decision, reward = 1, also) {
    return (await this.post(player, "rewards", {decision, reward, also})).learned;
  }

  async post(player, what, body) {
    const headers = {"Content-Type": "application/json", ...(this.key && {Authorization: `Bearer ${this.key}`})};
    const request = {method: "POST", headers, body: JSON.stringify(body), keepalive: true};
    const address = `${this.address}/v1/players/${encodeURIComponent(player)}/${what}`;
    const end = Date.now() + this.patience;
    for (let pause = 50; ; pause = Math.min(2 * pause, 2000)) {
      const answer = await fetch(address, request).catch((lost) => ({lost}));
      if (answer.ok) return answer.json();
      const again = answer.lost || [429, 502, 503, 504].includes(answer.status);
      if (!again || Date.now() + pause > end) throw answer.lost || (await refusal(answer));
      await new Promise((go) => setTimeout(go, pause * (0.5 + Math.random() / 2)));
    }
  }
}

const random = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");

async function refusal(answer) {
  const {error} = await answer.json().catch(() => ({}));
  return Object.assign(new Error(error || `the service answered ${answer.status}`), {status: answer.status});
}

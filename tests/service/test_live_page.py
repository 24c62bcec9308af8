"""The live page of the service, in a real browser where there is one."""

from __future__ import annotations

import http.server
import math
import random
import re
import threading
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")
from abex.service.keys import new_key  # noqa: E402
from tests.service.serving import command, service  # noqa: E402
from tests.waiting import PATIENCE, wait_until  # noqa: E402

MEANS = {"red": 0.2, "green": 0.5, "blue": 0.8}
HOSTILE = [
    "<img src=x onerror=window.hacked=1>", "</script><script>window.hacked=1</script>", "\" onmouseover='window.hacked=1'",
    "${window.hacked=1}", "javascript:window.hacked=1", "datum.x; window.hacked=1", "&lt;b&gt;", "a" * 200,
]  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with command(f"sqlite:///{tmp_path_factory.mktemp('live')}/shop.db") as (_, found):
        yield found


@pytest.fixture(scope="module")
def api(address):
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        yield client


@contextmanager
def looking(browser, address, width=1100, allowed=None, **options):
    """A page of its own; whatever it complains about fails the test, but for what is ``allowed``."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    trouble = []

    def complain(text):
        if allowed is None or not re.search(allowed, text):
            trouble.append(text)

    page.on(
        "console", lambda message: complain(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complain(str(error)))
    page.on("request", lambda one: complain(one.url) if not one.url.startswith((address, "blob:")) else None)
    page.goto(address)
    yield page
    assert trouble == []
    context.close()


def make(api, name, arms, **more):
    assert (
        api.post("/v1/players", json={"name": name, "policy": "Thompson", "arms": arms} | more).status_code
        == 201
    )


def play(api, name, count, seed):
    """Decisions for so many users, and their rewards."""
    rng = random.Random(seed)
    units = [f"{seed}-{number}" for number in range(count)]
    made = api.post(f"/v1/players/{name}/decisions/batch", json={"units": units}).json()["decisions"]
    told = [
        {"decision": one["id"], "reward": float(rng.random() < MEANS.get(one["arm"], 0.5))} for one in made
    ]
    assert api.post(f"/v1/players/{name}/rewards/batch", json={"rewards": told}).status_code == 200


@contextmanager
def locked(tmp_path):
    """A service that asks for keys, with one player; yields its address and a key of the role read."""
    (admin, first), (read, second) = new_key("admin"), new_key("read")
    (tmp_path / "keys").write_text(f"{first}\n{second}\n")
    with command(f"sqlite:///{tmp_path}/shop.db", "--keys", str(tmp_path / "keys")) as (_, address):
        with httpx.Client(
            base_url=address, headers={"authorization": f"Bearer {admin}"}, timeout=PATIENCE
        ) as api:
            make(api, "banner", list(MEANS))
            play(api, "banner", 30, seed=1)
        yield address, read


def tile(page, name):
    return page.locator(f"[data-tile='{name}'] dd")


def wait_for_tile(page, name, value):
    page.wait_for_function(
        "([name, value]) => document.querySelector(`[data-tile='${name}'] dd`)?.firstChild.textContent === value",
        arg=[name, value],
    )


def rounded(value, decimals):
    """As JavaScript does it: a number half way between two goes up."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):,}"


def numbers(low, high, value):
    """A value and its interval: two digits of the width are told, no more."""
    decimals = min(max(1 - math.floor(math.log10(high - low)), 0), 4)
    return [rounded(one, decimals) for one in (value, low, high)]


def percent(share):
    """A decimal where it says something, near 0 and near 100."""
    shown = 100 * share
    return f"{rounded(shown, 1 if 0.05 <= min(shown, 100 - shown) < 9.95 else 0)} %"


def open_player(page, address, name):
    page.goto(f"{address}/#/{name}")
    page.wait_for_selector("#earned[data-drawn] svg")


NOTE_SPEEDS = """() => {
  window.speeds = [];
  const note = () => window.speeds.push(parseFloat(document.querySelector("[data-tile='events per second'] dd").textContent));
  new MutationObserver(note).observe(document.getElementById("tiles"), { subtree: true, childList: true });
}"""
PATH_BUT_FOR = """(former) => {
  const found = [...document.querySelectorAll("#earned svg .mark-line path")].pop()?.getAttribute("d");
  return found && found !== former ? found : null;
}"""


def test_a_player_is_made_and_500_decisions_are_watched(browser, address, api):
    with looking(browser, address) as page:
        form = page.locator("#create form")
        page.wait_for_selector("#create[open]")  # there is no player yet
        form.locator("[name=name]").fill("banner")
        form.locator("[name=policy]").fill("EpsilonGreedy(epsilon=0.3)")
        form.locator("[name=arms]").fill("\n".join(MEANS))
        form.locator("[type=submit]").click()
        page.wait_for_selector("#player:visible")
        wait_for_tile(page, "decisions", "0")
        assert page.title() == "abex: banner"
        page.evaluate(NOTE_SPEEDS)
        path = ""
        for round_ in range(5):
            play(api, "banner", 100, seed=round_)
            wait_for_tile(page, "decisions", f"{100 * round_ + 100:,}")
            paid = api.get("/v1/players/banner/timeline").json()["reward"]
            wait_for_tile(page, "reward", f"{paid:.0f}")
            path = page.wait_for_function(PATH_BUT_FOR, arg=path).json_value()  # the chart follows
        wait_for_tile(page, "rewarded", "500")
        assert page.evaluate("Math.max(...window.speeds)") > 0.0
        assert tile(page, "open").inner_text() == tile(page, "expired").inner_text() == "0"
        summary, told = (api.get(f"/v1/players/banner/{what}").json() for what in ("summary", "timeline"))
        for one in summary["arms"]:
            row = page.locator("#arms tbody tr", has_text=one["arm"]).locator("td")
            assert row.nth(1).inner_text() == f"{one['pulls']:,}"
            mean, low, high = numbers(one["low"], one["high"], one["mean"])
            assert row.nth(2).inner_text() == mean
            assert row.nth(3).inner_text().strip() == f"{low} to {high}"
            assert row.nth(4).inner_text() == percent(one["probability"])
        assert sum(one["pulls"] for one in summary["arms"]) == 500
        uniform, *ends = told["uniform"]
        value, low, high = numbers(*ends, uniform)
        assert tile(page, "reward if uniform").inner_text().split() == [value, low, "to", high]
        assert page.locator("#shares svg .mark-area path").count() == 3
        assert page.locator("#shares-legend").inner_text().split() == list(MEANS)
        wait_for_tile(page, "events per second", "0")  # when nothing happens any more


def test_other_policies_on_the_log(browser, address, api):
    make(api, "asked", list(MEANS), policy="Uniform")
    play(api, "asked", 400, seed=7)
    with looking(browser, address) as page:
        open_player(page, address, "asked")
        page.locator("#what-if textarea").fill("UCB1\n\nNoSuchPolicy")
        page.locator("#what-if [type=submit]").click()
        page.wait_for_selector("#what-if-table:visible")
        rows = [row.inner_text().split("\t") for row in page.locator("#what-if-table tbody tr").all()]
        policies = ["UCB1", "NoSuchPolicy"]
        answer = api.post("/v1/players/asked/evaluate", json={"policies": policies}).json()
        assert [row[0] for row in rows] == ["as logged", *policies]
        assert rows[0][1] == f"{answer['logged']:.3f}"
        robust = next(
            one for one in answer["policies"][0]["estimates"] if one["estimator"] == "doubly robust"
        )
        value, low, high = numbers(robust["low"], robust["high"], robust["value"])
        assert rows[1][1:4] == [value, f"{low} to {high}", f"{robust['effective']:.0f}"]
        assert "NoSuchPolicy" in rows[2][4]
        page.locator("#what-if select").select_option("IPS")
        weighted = next(one for one in answer["policies"][0]["estimates"] if one["estimator"] == "IPS")
        assert (
            page.locator("#what-if-table tbody tr").nth(1).locator("td").nth(1).inner_text()
            == numbers(weighted["low"], weighted["high"], weighted["value"])[0]
        )
        with page.expect_download() as download:
            page.locator("[data-format=csv]").click()
        assert download.value.suggested_filename == "asked.csv"
        with open(download.value.path()) as file:
            assert len(file.readlines()) == 401


def test_one_tap_asks_who_won_and_changes_nothing(browser, address, api):
    make(api, "decided", list(MEANS), policy="Uniform")
    play(api, "decided", 900, seed=12)
    events = api.get("/v1/players/decided/summary").json()["seq"]
    with looking(browser, address, width=390) as page:
        open_player(page, address, "decided")
        form, told = page.locator("#ask-winner"), page.locator("#verdict")
        form.locator("button").click()
        page.wait_for_selector("#verdict[open]")
        answer = api.get("/v1/players/decided/winner").json()
        assert answer["winner"] == "blue"
        assert told.locator("#verdict-sentence").inner_text() == answer["sentence"]
        assert "5 % of such experiments" in told.locator("#verdict-about").inner_text()
        assert page.evaluate("document.activeElement.id") == "verdict-sentence"
        assert "lift" not in told.inner_text()
        told.locator("button").click()
        form.locator("select").select_option("red")
        form.locator("button").click()
        page.wait_for_selector("#verdict[open]")
        answer = api.get("/v1/players/decided/winner", params={"control": "red"}).json()
        for one in answer["arms"]:
            row = told.locator("tbody tr", has_text=one["label"]).inner_text().split("\n")
            mean, low, high = numbers(*one["interval"], one["rate"])
            assert row[:4] == [one["label"], f"{one['n']}", mean, f"{low} to {high}"]
            if one["label"] != "red":
                lift, *ends = (
                    f"{100 * share:+.0f} %".replace("-", "\u2212")
                    for share in (one["lift"], *one["lift_interval"])
                )
                assert row[4:6] == [lift, " to ".join(ends)]
            assert row[-1] == percent(one["chance_to_be_best"])
        box = told.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        page.keyboard.press("Escape")
        assert not told.is_visible()
    assert api.get("/v1/players/decided/summary").json()["seq"] == events


def test_who_has_no_right_to_ask_is_told_so(browser, tmp_path):
    with locked(tmp_path) as (address, read), looking(browser, address, allowed="status of 40") as page:
        page.locator("#key input").fill(read)
        page.keyboard.press("Enter")
        wait_for_tile(page, "decisions", "30")
        page.locator("#ask-winner button").click()
        page.wait_for_selector("#verdict[open]")
        page.keyboard.press("Escape")
        page.evaluate("sessionStorage.setItem('abex-key', 'abex_gone')")
        page.locator("#ask-winner button").click()
        page.locator("#ask-winner-note", has_text="key").wait_for()
        assert not page.locator("#verdict").is_visible()


def test_charts_come_before_lists_and_durations_are_words(browser, address, api):
    make(api, "long", [f"variant {number}" for number in range(20)], expire=86_400.0)
    play(api, "long", 200, seed=13)
    with looking(browser, address, width=390) as page:
        open_player(page, address, "long")
        assert page.locator("#about").inner_text().endswith("decisions expire after a day")
        tops = [
            page.locator(one).bounding_box()["y"] for one in ("#shares", "#earned", "#winner-head", "#arms")
        ]
        assert tops == sorted(tops)
        page.locator("#create summary").click()
        for seconds, words in (("86400", "a day"), ("5400", "an hour and 30 minutes"), ("97201", "a day, 3 hours and a second"),
                               ("0.5", "0.5 seconds"), ("", "")):  # fmt: skip
            page.locator("[name=expire]").fill(seconds)
            assert page.locator("[name=expire-words]").inner_text() == words


def pointed_at(page):
    """The name that is shown where one points at the middle of the areas; a chart that is drawn anew forgets the pointer."""
    page.mouse.move(0, 0)
    page.locator("#shares svg").hover()
    return page.evaluate("document.querySelector('#vg-tooltip-element.visible td.value')?.textContent")


def test_names_are_text_whatever_they_say(browser, address, api):
    names = [name.replace("/", "|") for name in HOSTILE]
    for name in names:
        make(api, name, HOSTILE)
        play(api, name.replace("%", "%25"), 50, seed=3) if name == names[0] else None
    with looking(browser, address) as page:
        links = page.locator("#players a")
        links.nth(len(names) - 1).wait_for()
        link = next(one for one in links.all() if one.inner_text().startswith(names[0]))
        link.click()
        page.wait_for_selector("#shares[data-drawn] svg")
        assert page.locator("#name").inner_text() == names[0]
        assert [one.inner_text().strip() for one in page.locator("#arms td:first-child").all()] == HOSTILE
        assert wait_until(lambda: pointed_at(page)) in HOSTILE
        page.locator("#what-if textarea").fill("\n".join(HOSTILE))
        page.locator("#what-if [type=submit]").click()
        page.wait_for_selector("#what-if-table:visible")
        assert page.locator("main img, main script, nav img").count() == 0
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 1100


def test_it_tells_where_aliases_send_visitors(browser, address, api):
    second = f"{HOSTILE[0]} v2"
    for name in ("v1", second):
        api.post("/v1/players", json={"name": name, "arms": 2}).raise_for_status()
    for split in ({"v1": 100}, {"v1": 90, second: 10}):
        api.put("/v1/aliases/home%2Fbanner", json={"split": split}).raise_for_status()
    with looking(browser, address) as page:
        page.wait_for_function("document.getElementById('aliases').textContent")
        text = page.text_content("#aliases")
        assert text == f"home/banner is v1 90 %, {second} 10 %"
        assert page.evaluate("window.hacked") is None
    api.delete("/v1/aliases/home%2Fbanner").raise_for_status()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(browser, address, api, scheme):
    make(api, f"phone {scheme} {'x' * 100}", [*MEANS, "y" * 100, "<b>z</b> " * 20])
    play(api, f"phone {scheme} {'x' * 100}", 100, seed=5)
    with looking(browser, address, width=390, color_scheme=scheme) as page:
        open_player(page, address, f"phone {scheme} {'x' * 100}")
        page.locator("#what-if [type=submit]").click()
        page.wait_for_selector("#what-if-table:visible")
        page.locator("#create summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        wide = "[...document.querySelectorAll('td, input, textarea, select, button, dd, svg')].filter((e) => e.checkVisibility())"
        assert page.evaluate(f"Math.max(...{wide}.map((e) => e.getBoundingClientRect().right))") <= 390
        background = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(background) == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 26)"}[scheme]
        drawn = int(page.locator("#shares").get_attribute("data-drawn"))
        page.locator("#theme").click()
        page.wait_for_function(
            "(drawn) => document.getElementById('shares').dataset.drawn > drawn", arg=drawn
        )
        assert page.evaluate(background) != {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 26)"}[scheme]


def test_everything_can_be_done_by_keyboard(browser, address, api):
    make(api, "keys one", list(MEANS))
    play(api, "keys one", 60, seed=8)
    with looking(browser, address) as page:
        open_player(page, address, "keys one")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.locator("#arms th button").nth(1).focus()
        page.keyboard.press("Enter")
        pulls = [int(text) for text in page.locator("#arms td:nth-child(2)").all_inner_texts()]
        assert pulls == sorted(pulls)
        play(api, "keys one", 40, seed=9)
        wait_for_tile(page, "decisions", "100")
        pulls = [int(text) for text in page.locator("#arms td:nth-child(2)").all_inner_texts()]
        assert pulls == sorted(pulls)  # and it stays sorted
        page.locator("#create summary").focus()
        page.keyboard.press("Enter")
        for text in ("keys two", "UCB1", "3"):
            page.keyboard.press("Tab")
            page.keyboard.press("Control+A")
            page.keyboard.type(text)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator("#name", has_text="keys two").wait_for()
        assert api.get("/v1/players/keys two/summary").json()["n_arms"] == 3
        page.locator("#players a", has_text="keys one").focus()
        page.keyboard.press("Enter")
        page.locator("#name", has_text="keys one").wait_for()
        assert page.locator("#players a[aria-current]").inner_text().startswith("keys one")


def test_an_heir_is_made_from_the_page(browser, address, api):
    make(api, "former", list(MEANS))
    play(api, "former", 50, seed=10)
    with looking(browser, address, allowed="status of 40") as page:
        open_player(page, address, "former")
        page.locator("#create summary").click()
        form = page.locator("#create form")
        form.locator("[name=name]").fill("former")
        form.locator("[name=arms]").fill("\n".join(MEANS))
        form.locator("[type=submit]").click()
        page.locator("#create-note", has_text="is another one").wait_for()
        form.locator("[name=name]").fill("heir")
        form.locator("[name=former]").select_option("former")
        form.locator("[type=submit]").click()
        page.locator("#name", has_text="heir").wait_for()
        observed = [one["observations"] for one in api.get("/v1/players/heir/summary").json()["arms"]]
        assert sum(observed) == 50


def test_a_service_that_is_away_is_told_and_found_again(browser, tmp_path):
    store = f"sqlite:///{tmp_path}/away.db"
    with command(store) as (_, address):
        port = str(urlsplit(address).port)
        with httpx.Client(base_url=address, timeout=PATIENCE) as api:
            make(api, "banner", list(MEANS))
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("#player:visible")
        wait_for_tile(page, "decisions", "0")
    page.wait_for_selector("#trouble:visible")
    with command(store, "--port", port), httpx.Client(base_url=address, timeout=PATIENCE) as api:
        play(api, "banner", 10, seed=1)
        wait_for_tile(page, "decisions", "10")
        page.wait_for_selector("#trouble", state="hidden")
    context.close()


def test_a_key_is_asked_for_and_kept_in_the_tab(browser, tmp_path):
    with locked(tmp_path) as (address, read), looking(browser, address, allowed="status of 40") as page:
        page.wait_for_selector("#key:visible")
        page.locator("#key input").fill("abex_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#trouble:visible")
        page.locator("#key input").fill(read)
        page.keyboard.press("Enter")
        wait_for_tile(page, "decisions", "30")
        page.reload()
        wait_for_tile(page, "decisions", "30")
        assert read not in page.url
        page.locator("#what-if [type=submit]").click()
        page.locator("#what-if-note", has_text="role admin").wait_for()
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]


def test_an_arm_that_is_called_like_a_colour_has_it(browser, address, api):
    arms = ["RebeccaPurple", "other", "inherit", "CanvasText", "gold", 7]
    make(api, "colours", arms)
    play(api, "colours", 200, seed=11)
    with looking(browser, address) as page:
        open_player(page, address, "colours")
        fills = [one.get_attribute("fill") for one in page.locator("#shares svg .mark-area path").all()]
        assert len(set(fills)) == len(fills) == 6
        assert (fills[0], fills[4]) == ("rgb(102, 51, 153)", "rgb(255, 215, 0)")
        marks = page.evaluate(
            "[...document.querySelectorAll('#arms .mark')].map((m) => getComputedStyle(m).backgroundColor)"
        )
        assert marks == fills


def test_no_arm_has_a_colour_that_looks_like_the_name_of_another(browser, address, api):
    """The first colour in turn is a blue, the third a green: both are skipped."""
    make(api, "alike", ["a", "blue", "b", "green"])
    play(api, "alike", 100, seed=12)
    with looking(browser, address) as page:
        open_player(page, address, "alike")
        fills = [one.get_attribute("fill") for one in page.locator("#shares svg .mark-area path").all()]
        assert fills == ["rgb(213, 94, 0)", "rgb(0, 0, 255)", "rgb(204, 121, 167)", "rgb(0, 128, 0)"]


def test_a_window_and_arms_that_were_never_chosen(browser, address, api):
    make(api, "fresh", ["a", "b"], window=60.0)
    play(api, "fresh", 1, seed=1)
    assert api.post("/v1/players/fresh/arms", json={"name": "new"}).status_code == 201
    with looking(browser, address) as page:
        open_player(page, address, "fresh")
        assert "silence counts by its age, in full after a minute" in page.locator("#about").inner_text()
        assert tile(page, "silent").inner_text() == "0"
        assert "3 events" in page.locator("#players a", has_text="fresh").inner_text()
        marks = page.evaluate("[...document.querySelectorAll('#arms .mark')].map((m) => m.style.cssText)")
        assert len(set(marks)) == 3
        assert all("--colour" in mark for mark in marks)
        assert page.locator("#arms .range:visible").count() == 1  # the interval of the one that was chosen


ATTACK = """async (address) => {
  const found = [];
  for (const options of [{}, { body: "{}" }, { body: "{}", headers: { "Content-Type": "application/json" } }]) {
    for (const mode of ["cors", "no-cors"]) {
      const target = `${address}/v1/players/target/decisions`;
      found.push(await fetch(target, { method: "POST", mode, ...options }).then((answer) => answer.type, () => "refused"));
    }
  }
  const form = document.createElement("form");
  const frame = document.createElement("iframe");
  frame.name = form.target = "hidden";
  Object.assign(form, { method: "POST", action: `${address}/v1/players/target/decisions` });
  document.body.append(frame, form);
  await new Promise((done) => { frame.onload = done; form.submit(); });
  return found;
}"""


def test_a_page_of_another_site_makes_no_decision(browser, address, api):
    make(api, "target", list(MEANS))
    evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=evil.serve_forever, daemon=True).start()
    context = browser.new_context()
    try:
        page = context.new_page()
        for host in ("localhost", "127.0.0.1"):  # another site, and another port of the same
            page.goto(f"http://{host}:{evil.server_port}/")
            assert "cors" not in page.evaluate(ATTACK, address)
    finally:
        context.close()
        evil.shutdown()
        evil.server_close()
    assert api.get("/v1/players/target/summary").json()["decisions"] == 0


class Evil(http.server.BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>evil</title><body></body>")

    def log_message(self, *arguments):
        pass


def test_the_page_allows_itself_alone(tmp_path):
    with service(f"sqlite:///{tmp_path}/shop.db") as client:
        page = client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in page.headers["content-security-policy"]
        assert not re.search(r"https?:|<style|style=|\son\w+=", page.text)
        files = re.findall(r'(?:src|href)="(page/[^"]+)"', page.text)
        assert len(files) == 7
        for file in files:
            answer = client.get(f"/{file}")
            assert answer.status_code == 200, file
            assert answer.headers["x-content-type-options"] == "nosniff"
            again = client.get(f"/{file}", headers={"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert client.get("/page/nothing.js").status_code == 404
        assert client.get("/page/..%2Fpage.py").status_code == 404
        small, plain = (
            client.get("/page/vega.js", headers={"accept-encoding": kind}) for kind in ("gzip", "identity")
        )
        assert small.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert small.text == plain.text

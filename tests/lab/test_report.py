"""The report page, in a real browser without network where there is one."""

from __future__ import annotations

import dataclasses
import html
import json
import re

import pytest

from abex.lab.experiments import Claim, Experiment, collect, run_experiment
from abex.lab.experiments.experiment import line
from abex.lab.report import write_report
from abex.lab.report.page import figure_data, make_page
from abex.lab.results import Store

NAMES = ["UCB1", "Uniform", "Thompson", *(f"Boltzmann(eta={eta})" for eta in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2))]
LARGEST = 6_000_000


def experiment(name: str) -> Experiment:
    return Experiment(
        name=name, title=f"Two arms </script> & {name}", problem={"environment": {"name": "Bernoulli", "means": [0.8, 0.4]}},
        lines=tuple(line(text, text) for text in NAMES), length=300, seeds=6, checkpoints=20,
        claims=(Claim("UCB1 beats a coin", "better", "UCB1", ("Uniform",)),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    with Store(folder / "cells.sqlite") as store:
        for name in ("one", "two"):
            run_experiment(experiment(name), store)
        store.save_experiment("empty-v1", experiment("empty").to_json() | {"seed": 99})
        write_report(store, folder / "report.html")
    return folder / "report.html"


def test_the_report_links_to_the_page_of_the_arena_beside_the_store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as store:
        write_report(store, tmp_path / "report.html")
        assert "arena-v" not in (tmp_path / "report.html").read_text(encoding="utf-8").split("<script>")[0]
        (tmp_path / "arena-v1-test.html").write_text("<p>all policies</p>", encoding="utf-8")
        (tmp_path / "a place").mkdir()
        for path, address in (
            ("report.html", "arena-v1-test.html"),
            ("a place/r.html", "../arena-v1-test.html"),
        ):
            write_report(store, tmp_path / path)
            assert f'<a href="{address}">' in (tmp_path / path).read_text(encoding="utf-8")


@pytest.fixture
def page(browser, path):
    context = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme="light", offline=True)
    opened = context.new_page()
    opened.trouble = []
    opened.on(
        "console",
        lambda message: opened.trouble.append(message.text) if message.type in ("error", "warning") else None,
    )
    opened.on("pageerror", lambda error: opened.trouble.append(str(error)))
    opened.on(
        "request",
        lambda request: opened.trouble.append(request.url) if request.url.startswith("http") else None,
    )
    opened.goto(path.as_uri())
    opened.locator("#one-v1 .figure").scroll_into_view_if_needed()
    opened.wait_for_selector("#one-v1 .plot[data-drawn='1'] svg")
    yield opened
    assert opened.trouble == []
    context.close()


def test_the_page_is_one_file_that_asks_for_nothing(path):
    text = path.read_text()
    assert len(text) < LARGEST
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']?https?:", text)
    assert "/*style*/" not in text
    assert "<!--data-->" not in text


def test_no_label_ends_a_script_or_takes_the_place_of_a_part(path, monkeypatch):
    hostile = "<!--<script> </script> <!--data--> /*script*/ /*style*/"
    monkeypatch.setattr("abex.lab.report.page.figure_data", lambda outcome: {"label": hostile})
    strange = dataclasses.replace(experiment("one"), title=hostile, figure=hostile)
    with Store(path.parent / "strange.sqlite") as store:
        text = make_page([collect(strange, store)])
    data = text.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    assert "<" not in data
    assert json.loads(data) == {"one-v1": {"label": hostile}}
    assert text.count("<script") == path.read_text().count("<script")
    assert text.count(html.escape(hostile)) >= 2
    assert len(text) < LARGEST


def test_lines_say_what_a_figure_hides_and_few_runs_have_no_interval(tmp_path):
    lines = (
        line("UCB1", "UCB1"),
        line("again", "UCB1"),
        line("brief", "Uniform", length=50),
        line("alone", "Uniform", seeds=1),
    )
    claim = Claim("UCB1 beats chance", "better", "UCB1", ("alone",), margin=2.5)
    several = dataclasses.replace(experiment("several"), lines=lines, claims=(claim,), seeds=5, length=100)
    with Store(tmp_path / "cells.sqlite") as store:
        run_experiment(several, store)
        outcome = collect(several, store)
    titles = [outcome.title_of(drawn) for drawn in outcome.lines]
    assert titles == ["UCB1", "again (the same as UCB1)", "brief (to 50)", "alone"]
    data = figure_data(outcome)
    assert [one["title"] for one in data["lines"]] == titles
    assert data["axes"]["step"] == "step"
    for row in data["rows"]:
        assert ("low" in row) == (row["line"] != "alone")
    losses = {(row["line"], row["step"]): row["loss"] for row in data["rows"]}
    for row in data["rows"]:  # the difference to the first line: above 0 is worse than it
        if ("UCB1", row["step"]) in losses:
            assert row["gap"] == pytest.approx(row["loss"] - losses["UCB1", row["step"]], rel=1e-3, abs=1e-3)
    assert any(row["gap"] > 1.0 for row in data["rows"])
    row = make_page([outcome]).partition('data-column="policy drawn"')[2].partition("</td>")[0]
    assert row == ">UCB1"
    assert '<figcaption class="about">Mean of 1 to 5 runs, 95 % confidence band.' in make_page([outcome])
    overview = make_page([outcome]).partition('id="overview"')[2].partition("</section>")[0]
    assert "rule: better, margin 2.5" in overview


def test_every_experiment_and_its_verdict_are_there(page):
    assert page.locator("section.experiment").count() == 3
    assert page.locator("#one-v1 h2").inner_text() == "Two arms </script> & one"
    assert page.locator("#overview td.yes").count() == 4  # by itself and with all others
    assert "Nothing of this experiment has been computed yet" in page.locator("#empty-v1 .plot").inner_text()


def test_the_page_opens_with_three_counts_and_the_first_figure(path):
    body = path.read_text(encoding="utf-8").partition("<body>")[2]
    counts = re.search(r'<ul class="counts">(.*?)</ul>', body)[1]
    assert re.findall(r"<b>(\d+)</b> ([^<]+)<", counts) == [
        ("2", "hold"), ("0", "do not hold"), ("1", "cannot be told")
    ]  # fmt: skip
    order = ['class="counts"', 'class="figure"', "<table", "<nav", 'id="overview"']
    places = [body.index(part) for part in order]
    assert places == sorted(places)


def test_figures_below_are_drawn_when_one_scrolls_to_them(page):
    page.locator("#two-v1").scroll_into_view_if_needed()
    page.wait_for_selector("#two-v1 .plot[data-drawn='1'] svg")


def paths_of(page) -> int:
    return page.locator("#one-v1 .plot .mark-line path").count()


def test_a_line_is_hidden_and_shown_by_its_button(page):
    before = paths_of(page)
    button = page.locator("#one-v1 .legend button", has_text="Uniform")
    button.click()
    page.wait_for_selector("#one-v1 .plot[data-drawn='2'] svg")
    assert button.get_attribute("aria-pressed") == "false"
    assert paths_of(page) == before - 1
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#one-v1 .plot[data-drawn='3'] svg")
    assert paths_of(page) == before


def test_axes_switch_between_log_and_linear_and_between_quantities(page):
    ticks = "#one-v1 .plot .role-axis-label text"
    logarithmic = page.locator(ticks).all_text_contents()
    page.locator("#one-v1 [data-control='log-x']").click()
    page.locator("#one-v1 [data-control='log-y']").click()
    page.wait_for_selector("#one-v1 .plot[data-drawn='3'] svg")
    assert page.locator(ticks).all_text_contents() != logarithmic
    page.locator("#one-v1 select[data-control='y']").select_option("gap")
    page.wait_for_selector("#one-v1 .plot[data-drawn='4'] svg")
    assert "paired difference to UCB1" in " ".join(
        page.locator("#one-v1 .plot .role-axis-title text").all_text_contents()
    )
    page.locator("#one-v1 select[data-control='x']").select_option("seconds")
    page.wait_for_selector("#one-v1 .plot[data-drawn='5'] svg")


def test_a_table_sorts_by_the_column_that_is_clicked(page):
    column = page.locator("#one-v1 table.sortable").nth(1)
    head = column.locator("th", has_text="regret")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = [float(text) for text in column.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert up == sorted(up)
    head.locator("button").click()
    down = [float(text) for text in column.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert down == sorted(up, reverse=True)


def test_the_page_is_dark_when_asked_and_fits_a_phone(browser, path):
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("#one-v1 .figure").scroll_into_view_if_needed()
    page.wait_for_selector("#one-v1 .plot[data-drawn='1'] svg")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.locator("#theme").click()
    assert page.evaluate(background) != dark
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_on_a_phone_no_verdict_is_cut_off(browser, path):
    context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    answers = page.locator("table td").all()  # of every table: no column is out of sight
    assert answers
    named = page.evaluate(
        "getComputedStyle(document.querySelector('#one-v1 table.lines td:nth-child(3)'), '::before').content"
    )
    assert named.startswith('"regret')
    assert all(
        box["x"] >= 0 and box["x"] + box["width"] <= 390
        for box in (one.bounding_box() for one in answers if one.is_visible())
    )
    context.close()


def test_a_black_line_has_a_visible_mark_in_the_dark(browser, path):
    context = browser.new_context(color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    marks = page.evaluate(
        "[...document.querySelectorAll('#one-v1 .legend button')].map((b) => getComputedStyle(b).borderLeftColor)"
    )
    assert len(marks) == len(NAMES)
    assert "rgb(0, 0, 0)" not in marks
    context.close()


def test_a_print_has_every_figure_and_table_and_cuts_nothing_off(browser, path):
    """Also from a dark page, and what is folded on the screen is unfolded on paper."""
    context = browser.new_context(viewport={"width": 794, "height": 1123}, color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function(
        "document.querySelectorAll('.plot svg').length === 2"
    )  # drawn without being scrolled to
    page.emulate_media(media="print")
    assert all(one.is_visible() for one in page.locator(".plot svg, table, details pre").all())
    widths = "[...document.querySelectorAll('table, .plot svg')].map((e) => e.getBoundingClientRect().right)"
    assert max(page.evaluate(widths)) <= 794
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    assert len(page.pdf(format="A4")) > 10_000
    context.close()


def test_everything_can_be_reached_and_used_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#one-v1 .legend button").first.focus()
    page.keyboard.press("Space")
    assert page.locator("#one-v1 .legend button").first.get_attribute("aria-pressed") == "false"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#one-v1 .legend button").nth(1).get_attribute("aria-pressed") == "false"
    page.locator("#one-v1 table.lines th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#one-v1 table.lines th").first.get_attribute("aria-sort") == "ascending"

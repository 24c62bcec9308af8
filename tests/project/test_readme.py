"""Every block of Python in README, CONTRIBUTING and the pages of docs runs with fewer steps, with names and a folder of its own.

It runs with the packages of those extras that stand above it on its page, as ``pip install '.[simulate]'``, and without all
others: above the first such line NumPy is all there is. A block that needs downloaded data, a server or much time has
``<!-- needs data -->`` (or another reason) on the line above it.
"""

import ast
import json
import pkgutil
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from abex.cli import COMMANDS
from abex.lab.arena.study import library
from abex.support.extras import EXTRA_OF, PACKAGES_OF
from tests.without_extras import INSTALL, extras_named_in, missing_without, run_without

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in page.parts
]
STEP = re.compile(INSTALL + r"|(?:<!-- needs (?P<needs>[^>]*) -->\n)?```python\n(?P<block>.*?)```", re.S)


class Block(NamedTuple):
    """A block of Python on a page."""

    name: str  # page and number
    text: str
    extras: tuple[str, ...]  # named above it
    needs: str | None  # what keeps it from running here


def blocks_of(page):
    """Blocks in their order."""
    extras, number = [], 0
    for step in STEP.finditer(page.read_text()):
        if step["extras"]:
            extras += step["extras"].split(",")
        else:
            yield Block(f"{page.stem}-{number}", step["block"], tuple(extras), step["needs"])
            number += 1


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
#: those that run below the same installs of a page, in one program: imports take longer than most of them
PROGRAMS = defaultdict(list)
for _block in BLOCKS:
    PROGRAMS[f"{_block.name.rpartition('-')[0]} {','.join(_block.extras)}"].append(_block)
SMALLER = (
    (r"horizon=[\d_]{5,}", "horizon=2_000"),
    (r"replications=\d+", "replications=2"),
    (r"1_000_000", "20_000"),
)
#: what a page takes for granted
BEFORE = {
    "data-1": """
        import numpy as np, pandas as pd
        table = pd.DataFrame({"weight": np.arange(40.0), "kind": ["pear", "plum"] * 20, "label": [0, 1] * 20})
        table[["weight", "kind"]].to_csv("fruit.csv", index=False)
        table[["weight", "label"]].to_parquet("table.parquet")
        table[["weight", "kind"]].to_csv("new-fruit.csv", index=False)
    """,
    "data-2": """
        import numpy as np, pandas as pd
        rng = np.random.default_rng(0)
        pairs = [(u, i, int(rng.integers(1, 6))) for u in range(30) for i in range(40) if rng.random() < 0.6]
        pd.DataFrame(pairs, columns=["user", "item", "rating"]).to_csv("stars.csv", index=False)
        friends = [(u, (u + step) % 30) for u in range(30) for step in (1, 2, 3)]
        pd.DataFrame(friends, columns=["person", "other"]).to_csv("friends.csv", index=False)
    """,
}


def test_there_are_blocks_and_prefaces_have_theirs():
    names = [block.name for block in BLOCKS]
    assert 20 < len(names) == len(set(names))
    assert set(BEFORE) <= set(names)


def test_who_copies_the_first_block_has_installed_the_core_alone():
    extras = {block.name: block.extras for block in BLOCKS}
    assert extras["README-0"] == extras["index-0"] == ()
    assert extras["index-1"] == ("simulate",)
    assert "simulate" in extras["README-1"]


def script_of(block):
    """The block as a program with fewer steps."""
    text = block.text
    for large, small in SMALLER:
        text = re.sub(large, small, text)
    if text.lstrip().startswith(">>>"):
        return f"r'''\n{text}\n'''\nimport doctest, sys\nsys.exit(doctest.testmod()[0])\n"
    return f"{textwrap.dedent(BEFORE.get(block.name, ''))}\n{text}"


#: runs each script with names and a folder of its own; one that ends well lets the next one begin
RUN = """
import os, pathlib, runpy, sys
for script in sys.argv[1:]:
    os.chdir(pathlib.Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_example(program, tmp_path):
    scripts = []
    for block in PROGRAMS[program]:
        if block.needs is None:
            folder = tmp_path / block.name
            folder.mkdir()
            scripts.append(folder / "example.py")
            scripts[-1].write_text(script_of(block))
    if not scripts:
        pytest.skip("needs " + ", ".join(sorted({block.needs for block in PROGRAMS[program]})))
    extras = PROGRAMS[program][0].extras
    run_without(missing_without(extras), f"import sys; sys.argv[1:] = {list(map(str, scripts))}\n{RUN}")


#: extras beside its own with which a command does what the pages show
ENOUGH = {"evaluate": "serve"}


def test_every_command_stands_below_an_install_that_is_enough_for_it():
    commands = [
        (page, text[: fence.start(1) + line.start()], line[1])
        for page, text in ((page, page.read_text()) for page in PAGES)
        for fence in re.finditer(r"^```(?:console)?\n(.*?)^```$", text, re.M | re.S)
        for line in re.finditer(r"^(?:\$ )?abex (\w+)", fence[1], re.M)
    ]
    assert len({name for _, _, name in commands}) > 8
    for page, above, name in commands:
        here = set(EXTRA_OF) - missing_without(extras_named_in(above))
        extra = COMMANDS[name][1]
        enough = [PACKAGES_OF[one] for one in (extra, ENOUGH.get(name)) if one]
        assert not extra or any(here >= set(packages) for packages in enough), f"{page.name}: abex {name}"


def test_every_install_names_extras_of_this_clone():
    """abex cannot be had by its name alone."""
    for page in PAGES:
        for named in re.findall(r"pip install \S*\[([\w,]+)\]", page.read_text()):
            assert set(named.split(",")) <= {*PACKAGES_OF, "all", "test", "dev", "docs"}, page
        assert "install 'abex" not in page.read_text(), page


def players_made_on(page):
    """(store, name) of every player that a page makes, with all that is said about it."""
    text = page.read_text()
    for block in re.findall(r"```(?:python|\{code-cell\})\n(?!>>>)(.*?)```", text, re.S):
        for call in ast.walk(ast.parse(block)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Player.open":
                store, name, *settings = map(ast.unparse, [*call.args, *(one.value for one in call.keywords)])
                if settings:
                    yield ast.literal_eval(store), ast.literal_eval(name), settings
    for start, made in ((m.start(), json.loads(m[1])) for m in re.finditer(r"-d '(\{\"name\".*?\})'", text)):
        store = re.findall(r"--store (sqlite:\S+)", text[:start])[-1]
        yield store, made.pop("name"), sorted(map(repr, made.items()))


def test_no_two_pages_make_different_players_of_one_name_in_one_file():
    """The second would be refused in the folder where somebody tries both."""
    known = {}
    for page in PAGES:
        for store, name, settings in players_made_on(page):
            first, where = known.setdefault((store, name), (settings, page.name))
            assert settings == first, f"{name!r} in {store} is made on {where} and on {page.name}"
    assert len(known) >= 6


def test_the_number_of_policies_is_that_of_the_library_and_of_the_tables():
    ours = len(library())
    assert (ROOT / "docs/which_policy_tables.md").read_text().startswith(f"{ours} policies, ")
    for page in (ROOT / "docs/measured.md", ROOT / "docs/index.md"):
        assert set(re.findall(r"(\d+) policies\b", page.read_text())) == {str(ours)}


BEGINNINGS = (ROOT, ROOT / "src/abex")  # where a path on the page for developers begins


def test_contributing_names_files_that_exist():
    text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.S)
    paths = re.findall(r"`(\w[\w.]*/[\w./]*)`", text)
    assert len(paths) > 15
    missing = [path for path in paths if not any((start / path).exists() for start in BEGINNINGS)]
    assert missing == ["src/abex/policies/my_policy.py"]


def test_what_contributing_says_to_change_stands_in_the_files_of_its_row():
    rows = re.findall(r"^\| (an? [^|]+) \| (.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    named = {}
    for thing, how in rows:
        files = [ROOT / "src/abex" / path for path in re.findall(r"`(\w+/[\w./]+)`", how)]
        text = "".join(file.read_text() for file in files if file.is_file())
        named[thing] = {name: name in text for name in re.findall(r"`([A-Za-z_]\w+)[`(]", how) if files}
    assert sum(map(len, named.values())) >= 10
    assert {
        thing: [name for name, found in names.items() if not found] for thing, names in named.items()
    } == {thing: [] for thing, _ in rows}


def test_pages_and_docstrings_name_what_exists():
    names = {
        name: file
        for file in (*PAGES, *(ROOT / "src/abex").rglob("*.py"))
        for name in re.findall(r"`(abex(?:\.\w+)+)(?=[`(])", file.read_text())
    }
    assert len(names) > 50
    assert {name: file.name for name, file in names.items() if not there(name)} == {}


def there(name):
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
MADE = ("api/", "paper/")  # pages that docs/conf.py writes


def test_links_between_files_lead_somewhere():
    """`make docs` checks the built pages with their anchors; this one also those that are read as files."""
    pages = [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    prose = {page: re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S) for page in pages}
    links = [(page, link) for page in pages for link in LINK.findall(prose[page]) if "//" not in link]
    assert len(links) > 80
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page, link in links
        if not link.removeprefix("../").startswith(MADE) and not (page.parent / link).exists()
    ]
    assert not broken


def test_no_page_has_the_marks_of_an_unfinished_merge():
    pages = [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    assert not [page.name for page in pages if re.search(r"^(<{7} |={7}$|>{7} )", page.read_text(), re.M)]


def test_a_page_that_shows_expire_says_what_silence_does():
    shown = [page for page in PAGES if re.search(r"expire=|\"expire\"", page.read_text())]
    assert shown
    for page in shown:
        text = page.read_text()
        assert "late_rewards.md#silence" in text or page.name == "late_rewards.md", page.name
    assert "\n## Silence\n" in (ROOT / "docs" / "late_rewards.md").read_text()


def test_pages_of_figures_show_each_panel_with_its_verdicts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from figure_pages import BADGES, write_figures

    from abex.lab.experiments import known_experiments

    write_figures(ROOT / "docs" / "experiments.md", tmp_path / "paper")
    pages = {page.stem: page.read_text() for page in (tmp_path / "paper").iterdir()}
    assert set(pages) == {"index", *(f"figure-{number}" for number in range(1, 7))}
    text = "".join(pages.values())
    named = set(re.findall(r"^abex run (\S+)", text, re.M))
    assert named == {name for name in known_experiments() if not name.endswith("-quick")}
    folder = ROOT / "docs" / "figures" / "paper"
    panels = json.loads((folder / "panels.json").read_text())
    shown = set(re.findall(r"figures/paper/(\S+)\.svg", text))
    assert shown == set(panels) == {path.stem for path in folder.glob("*.svg")} <= named
    for name, panel in panels.items():
        assert (folder / f"{name}.svg").stat().st_size < 150_000
        page = pages[f"figure-{panel['figure'][7]}"]
        assert f':alt: "{panel["alt"]}"' in page
        assert f"## {panel['figure']}. {panel['title']}" in page
        for one in panel["verdicts"]:
            assert f"**{one['claim']}**: {one['measured']}" in page
            assert f"{{bdg-{BADGES[one['alone']]}}}`{one['alone']}`" in page


def test_a_page_includes_every_part_of_the_tables_of_the_paper():
    page, tables = (
        (ROOT / "docs" / name).read_text() for name in ("experiments.md", "experiments_tables.md")
    )
    parts = re.findall(r"^<!-- (.*) -->\n(?:.*\n)+?<!-- end -->", tables, re.M)
    assert re.findall(r":start-after: <!-- (.*) -->\n:end-before: <!-- end -->", page) == parts
    assert parts == ["counts", "facebook", "epinions", "claims", "full search"]


def test_every_benchmark_has_its_place():
    from benchmarks.tables import BENCHMARKS, NO_TABLE

    run = {re.search(r"benchmarks[/.](\w+)|abex (\w+)", one.command).group(1) for one in BENCHMARKS.values()}
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert scripts - run == NO_TABLE
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for name, one in BENCHMARKS.items():
        assert f"`{name}`" in page
        assert (ROOT / "docs" / f"{one.page}.md").exists()
    included = set(re.findall(r"benchmarks/([\w-]+)\.txt", page))
    assert included == {path.stem for path in (ROOT / "docs" / "benchmarks").iterdir()}

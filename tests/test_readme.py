"""Every block of Python in the README and in the pages of docs runs (with fewer steps), each in a program of its own.

A block that needs downloaded data, a server or much time has ``<!-- needs data -->`` (or another reason) on the line above it.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- needs ([^>]*) -->\n)?```python\n(.*?)```", re.S)
BLOCKS = [
    pytest.param(
        needs, block, f"{page.stem}-{number}", id=f"{page.relative_to(ROOT).with_suffix('')}-{number}"
    )
    for page in PAGES
    if "_build" not in page.parts
    for number, (needs, block) in enumerate(BLOCK.findall(page.read_text()))
]
SMALLER = (
    (r"horizon=[\d_]{5,}", "horizon=2_000"),
    (r"replications=\d+", "replications=2"),
    (r"1_000_000", "20_000"),
)
#: what a page takes for granted
BEFORE = {
    "data-1": """
        import numpy as np, pandas as pd
        from sklearn.datasets import dump_svmlight_file
        table = pd.DataFrame({"weight": np.arange(40.0), "kind": ["pear", "plum"] * 20, "label": [0, 1] * 20})
        table[["weight", "kind"]].to_csv("fruit.csv", index=False)
        table[["weight", "label"]].to_parquet("table.parquet")
        for name in ("train.svm", "test.svm"):
            dump_svmlight_file(table[["weight"]].to_numpy(), table["label"], name)
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
    names = {param.values[2] for param in BLOCKS}
    assert len(names) > 20
    assert set(BEFORE) <= names


@pytest.mark.parametrize(("needs", "block", "name"), BLOCKS)
def test_example(needs, block, name, tmp_path):
    if needs:
        pytest.skip(f"needs {needs}")
    for large, small in SMALLER:
        block = re.sub(large, small, block)
    script = tmp_path / "example.py"
    if block.lstrip().startswith(">>>"):
        script.write_text(f"r'''\n{block}\n'''\nimport doctest, sys\nsys.exit(doctest.testmod()[0])\n")
    else:
        script.write_text(f"{textwrap.dedent(BEFORE.get(name, ''))}\n{block}")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
MADE = ("api/", "paper/")  # pages that docs/conf.py writes


def test_links_between_files_lead_somewhere():
    """`make docs` checks the built pages with their anchors; this one also those that are read as files."""
    pages = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    prose = {page: re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S) for page in pages}
    links = [(page, link) for page in pages for link in LINK.findall(prose[page]) if "//" not in link]
    assert len(links) > 80
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page, link in links
        if not link.removeprefix("../").startswith(MADE) and not (page.parent / link).exists()
    ]
    assert not [line for line in broken if "_build" not in line]


def test_a_page_that_shows_expire_says_what_silence_does():
    shown = [page for page in PAGES if re.search(r"expire=|\"expire\"", page.read_text())]
    assert len(shown) >= 5
    for page in shown:
        text = page.read_text()
        assert "late_rewards.md#silence" in text or page.name == "late_rewards.md", page.name
    assert "\n## Silence\n" in (ROOT / "docs" / "late_rewards.md").read_text()


def test_pages_of_figures_are_made_from_what_came_out(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from figure_pages import write_figures

    write_figures(ROOT / "docs" / "experiments.md", tmp_path / "paper")
    pages = {page.stem: page.read_text() for page in (tmp_path / "paper").iterdir()}
    assert set(pages) == {"index", *(f"figure-{number}" for number in range(1, 7))}
    assert "abex run boosting-usps-comparison" in pages["figure-1"]
    assert "| claim | MNIST | USPS | ISOLET |" in pages["figure-1"]
    assert "| claim | pendigits | letter |" in pages["figure-6"]
    assert "| Epinions, 50,000 steps |" in pages["figure-4"]
    from abex.experiments import known_experiments

    named = set(re.findall(r"abex run (\S+)", "".join(pages.values())))
    assert named == {name for name in known_experiments() if not name.endswith("-quick")}


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

"""Files for those who build and release say the same as pyproject.toml."""

import json
import re
import tomllib
from itertools import chain
from pathlib import Path

import abex

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_one():
    assert PROJECT["version"] == abex.__version__
    assert f"version: {abex.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_the_conda_recipe_has_the_bounds_of_the_project():
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    ranges = dict(re.findall(r"- ([\w-]+) (>=[\d.]+(?:,<[\d.]+)?)$", recipe, re.M))
    required = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    ours = dict(re.match(r"([\w-]+)(?:\[\w+\])?(>=.*)", one).groups() for one in required if ">=" in one)
    for package, bounds in ranges.items():
        if package not in ("python", "hatchling"):
            assert ours[package.removesuffix("-base")] == bounds
    assert {re.match(r"\w+", one)[0] for one in PROJECT["dependencies"]} <= set(ranges)
    assert ranges["python"] == PROJECT["requires-python"]


def test_benchmarks_that_are_followed_are_there():
    settings = json.loads((ROOT / "asv.conf.json").read_text())
    found = [path.read_text() for path in (ROOT / settings["benchmark_dir"]).glob("*.py")]
    assert sum(len(re.findall(r"def (?:time|track|mem)_\w+", text)) for text in found) >= 4
    assert ".asv/" in (ROOT / ".gitignore").read_text()


def test_what_runs_on_other_versions_is_there():
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    named = re.search(r"^OLDEST_TESTS = (.*)$", makefile, re.M).group(1).split()
    assert named
    assert all((ROOT / "tests" / name).exists() for name in named)


def test_what_is_shipped_of_others_has_its_licence_in_the_wheel():
    (notices,) = [ROOT / name for name in PROJECT["license-files"] if name != "LICENSE"]
    text = notices.read_text()
    others = list((ROOT / "src").rglob("*.min.js"))
    assert others
    for path in others:
        name = path.name.removesuffix(".min.js")
        assert path.parent == notices.parent
        assert re.search(rf"\b{name} \d+\.\d+\.\d+", text)  # which version
        assert f"\n== {name}\n" in text  # its licence


def test_what_users_install_beside_abex_has_bounds_on_both_sides():
    shipped = PROJECT["optional-dependencies"].keys() - {"test", "dev", "docs"}
    of_users = [
        *PROJECT["dependencies"],
        *chain(*(PROJECT["optional-dependencies"][name] for name in shipped)),
    ]
    assert all(">=" in one and "<" in one.split(";")[0] for one in of_users if not one.startswith("abex[")), (
        of_users
    )

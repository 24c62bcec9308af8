"""Files for those who build and release say the same as pyproject.toml."""

import json
import re
import tomllib
from itertools import chain
from pathlib import Path

import yaml
from jinja2 import Template

import abex

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_one():
    assert PROJECT["version"] == abex.__version__
    assert f"version: {abex.__version__}" in (ROOT / "CITATION.cff").read_text()


def bounds(requirements):
    """Name of each package -> its bounds, whatever extras or markers it has."""
    found = (re.match(r"([\w-]+)(?:\[[\w,]+\])? ?(>=.*?)(?:;|$)", one) for one in requirements)
    return {one[1]: one[2] for one in found if one}


def test_the_conda_recipe_says_what_the_project_says():
    place = ROOT / "packaging" / "conda" / "meta.yaml"
    pyproject = {"load_file_data": lambda path, **_: tomllib.loads((place.parent / path).read_text())}
    recipe = yaml.safe_load(Template(place.read_text()).render(PYTHON="python", **pyproject))
    assert (place.parent / recipe["source"]["path"]).resolve() == ROOT
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert recipe["build"]["entry_points"] == [
        f"{name} = {place}" for name, place in PROJECT["scripts"].items()
    ]
    assert recipe["about"]["license"] == PROJECT["license"]
    wanted = {name: bounds(recipe["requirements"][name]) for name in ("host", "run", "run_constrained")}
    python = {"python": PROJECT["requires-python"]}
    assert wanted["run"] == bounds(PROJECT["dependencies"]) | python
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert wanted["host"] == bounds(built) | python
    ours = bounds(chain(*PROJECT["optional-dependencies"].values()))
    for package, ranges in wanted["run_constrained"].items():
        assert ours[package.removesuffix("-base")] == ranges


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

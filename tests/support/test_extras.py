"""The core runs with NumPy alone; what is missing is one sentence with the command to type."""

import ast
import pickle
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from abex.support.extras import (
    EXTRA_OF,
    PACKAGES_OF,
    MissingExtraError,
    how_to_install,
    install_command,
    installed,
    needed,
    origin_of_abex,
)
from tests.examples import all_examples
from tests.without_extras import run_without

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTION = {
    "sklearn": "scikit-learn",
    "dask": "distributed",
    "prometheus_client": "prometheus-client",
    "openfeature": "openfeature-sdk",
    "opentelemetry.distro": "opentelemetry-distro",
    "opentelemetry.instrumentation.asgi": "opentelemetry-instrumentation-asgi",
    "opentelemetry.sdk": "opentelemetry-sdk",
}  # where it is not called as it is imported


def brought_by(extra):
    """The distributions of an extra and of those it is made of."""
    found = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        if own := re.fullmatch(r"abex\[([\w,]+)\]", requirement):
            for inner in own[1].split(","):
                found |= brought_by(inner)
        else:
            found.add(re.match(r"[\w-]+", requirement)[0])
    return found


def test_every_extra_brings_the_packages_that_its_sentences_name():
    assert set(PACKAGES_OF) == set(PROJECT["optional-dependencies"]) - {"all", "test", "dev", "docs"}
    for extra, packages in PACKAGES_OF.items():
        assert {DISTRIBUTION.get(package, package) for package in packages} == brought_by(extra), extra
        assert brought_by(extra) <= brought_by("all")


def installed_from(monkeypatch, origin):
    monkeypatch.setattr("abex.support.extras.origin_of_abex", lambda: origin)
    return install_command("simulate")


def test_the_command_is_that_of_the_way_in_which_abex_was_installed(monkeypatch, tmp_path):
    """From a clone another package of that name, or none, would be found where packages are published."""
    assert installed_from(monkeypatch, None) == "pip install 'abex[simulate]'"
    clone = tmp_path / "my clone"
    folder = {"url": clone.as_uri(), "dir_info": {}}
    assert installed_from(monkeypatch, folder) == "pip install '.[simulate]' in a clone of abex"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert installed_from(monkeypatch, folder) == f"pip install '{clone}[simulate]'"
    monkeypatch.chdir(clone)
    assert installed_from(monkeypatch, folder) == "pip install '.[simulate]'"
    editable = {**folder, "dir_info": {"editable": True}}
    assert installed_from(monkeypatch, editable) == "pip install -e '.[simulate]'"
    wheel = {"url": "file:///tmp/abex-1-py3-none-any.whl", "archive_info": {}}
    assert installed_from(monkeypatch, wheel) == f"pip install 'abex[simulate] @ {wheel['url']}'"
    git = {"url": "https://x.org/abex", "vcs_info": {"vcs": "git", "commit_id": "a1"}}
    assert installed_from(monkeypatch, git) == "pip install 'abex[simulate] @ git+https://x.org/abex@a1'"


def test_where_abex_came_from_is_what_pip_noted(monkeypatch):
    noted = {"direct_url.json": '{"url": "file:///clone", "dir_info": {}}'}
    monkeypatch.setattr("abex.support.extras.distribution", lambda name: SimpleNamespace(read_text=noted.get))
    assert origin_of_abex() == {"url": "file:///clone", "dir_info": {}}
    noted.clear()
    assert origin_of_abex() is None

    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("abex.support.extras.distribution", not_installed)
    assert origin_of_abex()["url"] == ROOT.as_uri()


def test_the_outer_extra_is_named_if_it_brings_the_package():
    with pytest.raises(MissingExtraError, match=r"needs numba, .*\[report\]'"), needed("report"), needed():
        raise MissingExtraError("numba")
    for outer in (None, "serve"):
        with pytest.raises(MissingExtraError, match=r"needs numba, .*\[boosting\]'"), needed(outer):
            raise MissingExtraError("numba", "boosting")


def test_the_sentence_comes_back_from_another_process():
    error = MissingExtraError("numba", "boosting")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


CORE = ["numpy", "click", "platformdirs", "msgspec"]


def test_the_core_is_numpy_and_three_small_packages():
    assert [re.match(r"\w+", one)[0] for one in PROJECT["dependencies"]] == CORE


def test_everything_that_is_imported_is_declared():
    known = {*EXTRA_OF, *CORE, "abex", *sys.stdlib_module_names, "__future__"}
    undeclared = set()
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
        optional = {id(inner) for one in tries for inner in ast.walk(one)}  # what is tried, not needed
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            if id(node) not in optional:
                undeclared |= {name.split(".")[0] for name in names} - known
    assert undeclared <= {"IPython"}  # which shows objects where it runs anyway


def test_every_lower_and_upper_bound_is_written():
    for requirement in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["simulate"]]:
        assert re.search(r">=[\d.]+,<[\d.]+$", requirement), requirement


# every policy decides, learns, tells its probabilities and is saved; many arms too
PLAY = """
from abex import Graph, Player
from abex.support.extras import MissingExtraError
from abex.policies import parse_policy
import sys, tempfile, pathlib
graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (1, 4)], 5)
file = pathlib.Path(tempfile.mkdtemp()) / "player.json"
played, planned = 0, set()
for text in {texts!r}:
    policy = parse_policy(text)
    try:
        player = Player(policy, 5, graph=graph, horizon=1000, seed=1)
    except MissingExtraError as error:  # a linear program
        assert error.package == "scipy"
        planned.add(str(policy))
        continue
    for i in range(8):
        decision = player.decide()
        assert 0.0 <= decision.probability <= 1.0
        player.update(decision, float(i % 3 == 0))
    str(player.summary())
    player.save(file)
    assert Player.load(file).decide().arm == player.decide().arm
    played += 1
many = Player(n_arms=6_000, seed=1)
many.update(many.decide(), 1.0)
assert played > 60, played
assert all("LP" in text or "cover='lp'" in text for text in planned), planned
assert not {{"numba", "scipy", "matplotlib", "pandas"}} & set(sys.modules)
"""


def test_every_policy_without_a_linear_program_plays_with_numpy_alone():
    run_without(EXTRA_OF, PLAY.format(texts=[repr(policy) for policy in all_examples()]))


SENTENCE = r"this needs {}, which is not installed: pip install .*\[{}\]'"
NEEDS = {
    "numba": "from abex import *\nsimulate(UCB1(), Bernoulli([0.5, 0.6]), horizon=10)",
    "scipy": "from abex.support.intervals import Estimate\nEstimate(2.0, 0.5, 9.0).interval()",
    "matplotlib": "from abex.support.figures import canvas\ncanvas()",
    "sklearn": "from abex.boosting import AdaBoostMHClassifier",
    "pandas": "from abex import Player\nPlayer(n_arms=2).summary().frame()",
    "pyarrow": "from abex.support.table_files import _parquet\n_parquet('x.parquet')",
    "ncompress": "from abex.lab.datasets.source_files import uncompress\nuncompress(b'', 'x.Z')",
    "networkx": "from abex import Graph\nGraph.from_edges([(0, 1)], 2).to_networkx()",
    "jinja2": "from abex.lab.report.page import make_page\nmake_page([])",
    "distributed": "from abex.lab.sweeps import executor_of\nexecutor_of('tcp://nowhere:1').__enter__()",
    "psycopg": "from abex import Player\nPlayer.open('postgresql://nobody@nowhere/none', 'x')",
    "starlette": "from abex.service import create_app",
    "httpx": "from abex.client import Client",
}


@pytest.mark.parametrize("package", NEEDS)
def test_a_missing_package_is_one_sentence_with_the_command(package):
    code = f"""
from abex.support.extras import MissingExtraError
try:
    exec({NEEDS[package]!r})
except MissingExtraError as error:
    print(error)
"""
    said = run_without([package], code).stdout.strip()
    assert re.fullmatch(SENTENCE.format(package, r"\w+"), said)


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("numba", "simulate", ["simulate", "--horizon", "10", "--out", "/tmp/x"]),
        ("sklearn", "report", ["reproduce", "--quick"]),
        ("joblib", "report", ["arena"]),
        ("starlette", "serve", ["serve", "--store", "sqlite:///x.db"]),
        ("sklearn", "data", ["data", "check"]),
        ("sklearn", "report", ["boost", "train", "digits"]),
        ("distributed", "cluster", ["run", "facebook-varying-quick", "--executor", "tcp://nowhere:1"]),
    ],
)
def test_the_command_line_says_it_in_a_line_and_exits_with_2(package, extra, arguments, tmp_path):
    code = f"import os; os.chdir({str(tmp_path)!r})\nfrom abex.cli import main\nmain({arguments!r})"
    done = run_without([package], code, check=False)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch("abex: " + SENTENCE.format(package, extra), last)


def test_the_command_runs_without_any_extra(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    code = f"""
import click
from abex.cli import COMMANDS, group, main
def helped(command, *path):
    main([*path, "--help"])
    for name in command.list_commands(None) if isinstance(command, click.Group) else ():
        helped(command.get_command(None, name), *path, name)
helped(group)
main(["list"])
main(["player", "create", "banner", "--store", {url!r}, "--arm", "red", "--arm", "green"])
main(["player", "decide", "banner", "--store", {url!r}])
main(["player", "summary", "banner", "--store", {url!r}])
"""
    said = run_without(EXTRA_OF, code).stdout
    assert said.count("Usage: abex") > 30
    assert "Thompson" in said
    assert "epinions-varying-quick" in said
    assert "green" in said


def test_other_import_errors_stay_what_they_are():
    with pytest.raises(ModuleNotFoundError), needed():
        import no_such_package_anywhere  # noqa: F401
    with pytest.raises(ModuleNotFoundError) as caught, needed():
        import numba.no_such_part  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)
    assert installed("numpy")
    assert not installed("no_such_package_anywhere")
    assert how_to_install("scipy", "boosting").endswith("[boosting]'")


def test_importing_abex_imports_numpy_and_nothing_heavier():
    code = "import sys, abex; print(sorted({name.split('.')[0] for name in sys.modules} & set(%r)))" % [
        *EXTRA_OF,
        "click",
        "platformdirs",
    ]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

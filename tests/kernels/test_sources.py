"""Stamps: an edit makes stale what depends on it, and nothing else."""

import ast
import shutil

import pytest

from abex.kernels import sources

MODULES = {
    ".".join(
        [
            "abex",
            *(part for part in path.relative_to(sources.PACKAGE).with_suffix("").parts if part != "__init__"),
        ]
    ): path
    for path in sources.PACKAGE.rglob("*.py")
}


def at_top(path):
    """Statements of a module that run when it is imported; what only type checkers see is left out."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node


def run_at_import(nodes):
    """All statements that run when a module is imported: those of functions do not."""
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from run_at_import(ast.iter_child_nodes(node))


def test_imports_are_those_that_python_sees():
    for module in sorted(MODULES):
        check_imports(module)


def check_imports(module):
    needed, nested = set(), []
    for node in run_at_import(at_top(MODULES[module])):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "no relative imports"
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in below]
        ours = {name for name in names if name.split(".")[0] == "abex"} - {module}
        needed |= ours
        if ours and node.col_offset:
            nested.append(ast.unparse(node))
    assert not nested, f"{module}: imports begin a line"
    parents = {name.rpartition(".")[0] for name in needed}
    assert needed <= sources.imports(module) <= needed | parents, module


def test_a_name_that_a_package_shares_with_its_submodule_means_both(copy):
    (sources.PACKAGE / "tried.py").write_text(
        "from abex.lab.sweeps import sweep\nfrom abex.samplers import largest_beta\n"
    )
    copy("abex.tried")
    assert sources.imports("abex.tried") == {
        "abex.lab.sweeps",
        "abex.lab.sweeps.sweep",
        "abex.samplers.largest_beta",
    }


def test_no_module_changes_another():
    for module in sorted(MODULES):
        check_assignments(module)


def check_assignments(module):
    tree = ast.parse(MODULES[module].read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.split(".")[0] == sources.NAME]
            modules |= {(alias.asname or alias.name).split(".")[0] for alias in ours}
        elif isinstance(node, ast.ImportFrom):
            modules |= {a.asname or a.name for a in node.names if f"{node.module}.{a.name}" in MODULES}
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                assert target.value.id not in modules, ast.unparse(node)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the package that may be edited; a function that edits one file and gives the stamp of a module."""
    package = tmp_path / "abex"
    shutil.copytree(sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))

    def forget():
        for function in (
            sources.imports,
            sources._content,
            sources._file,
            sources._ours,
            sources.source_stamp,
        ):
            function.cache_clear()

    def stamp(module, edited=None):
        before = None
        if edited is not None:
            before = (package / edited).read_text()
            (package / edited).write_text(before + "\n# edited\n")
        forget()
        found = sources.stamp_of([module]), sources.source_stamp()
        if edited is not None:
            (package / edited).write_text(before)
        return found

    forget()
    monkeypatch.setattr(sources, "PACKAGE", package)
    yield stamp
    forget()


def test_an_edit_makes_stale_what_depends_on_it_and_nothing_else(copy):
    depends = {
        "abex.policies.ucb": ["policies/ucb.py", "policies/learner.py", "kernels/compiling.py", "kernels/record_type.py"],
        "abex.boosting.splitter": ["boosting/splitter.py", "boosting/histogram.py", "boosting/vectors.py"],
        "abex.simulation.loop": ["simulation/loop.py", "policies/policy.py", "kernels/cache.py"],
    }  # fmt: skip
    unrelated = [
        "cli/simulate.py",
        "lab/report/page.py",
        "lab/results/claims.py",
        "policies/thompson.py",
        "lab/datasets/own_tables.py",
        "__init__.py",
    ]
    for module, files in depends.items():
        before, whole = copy(module)
        for file in files:
            assert copy(module, file)[0] != before, file
        for file in unrelated:
            after, changed = copy(module, file)
            assert after == before, file
            assert changed != whole  # the stamp of everything does change
    assert copy("abex.simulation.loop") == (copy("abex.simulation.loop")[0], whole)


def test_what_has_no_source_has_no_stamp(copy):
    assert copy("abex.no_such_module")[0] is None

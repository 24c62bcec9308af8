"""What the house must not fall back into: counted in the sources, without importing them."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from benchmarks import architecture, lines

from tests.each import each

SOURCES = Path(__file__).parents[2] / "src" / "abex"
ONE_ROOM = {
    "numba": "kernels",
    "llvmlite": "kernels",
    "matplotlib": "support/figures",
}  # the only room that imports it
# ... but for what boosting alone adds to compiled code.
ELSEWHERE = {
    (package, f"boosting/{name}") for package in ("numba", "llvmlite") for name in ("loop", "vectors")
}
LABORATORY = ("lab/datasets", "lab/results", "lab/sweeps", "lab/experiments", "lab/report", "cli")
KERNELS = {"kernel", "rare_kernel", "single_dispatch", "register", "compiled"}

# Words that do not tell what a module holds, or three words for one thing.
UNTOLD = {
    "learning", "training", "fitting", "stages", "single", "lanes", "machine", "levels", "rows", "table", "own_files",
}  # fmt: skip

# Arrays whose first places mean something by their nature: the root of a tree, the first of a list of lists.
FIRST_PLACES = {
    "boosting": {"tree: begin", "tree: end", "tree: parent"},
    # what belongs to a decision is kept in arrays, of one number here, while its reward is under way (`abex.kinds.Chance`)
    "policies": {"exp3: probabilities", },
    "samplers": {
        "buckets: arms", "buckets: mass", "buckets: order", "buckets: start", "evidence: winners",
        "sum_tree: tree",
    },
}  # fmt: skip

# Modules of one name in several packages, because they tell of one thing.
SHARED_NAMES = {
    "evidence": {"policies", "samplers", "theory"},
    "page": {"lab/report", "lab/arena", "service"},
    "loop": {"simulation", "boosting"},  # of a policy and a world, and of a policy and a learner
    "settings": {"service", "boosting"},
    "schedule": {"policies", "theory"},
    "experiment": {"inference", "lab/experiments"},  # of an application, and of the laboratory
    "store": {"players", "lab/results"},  # of players, and of results: nobody has both at hand
}

# Classes of one name in two modules: a policy and a delay are both called by their distribution, a store by what it is.
SHARED_CLASSES = {
    "Uniform": {"simulation/delays", "policies/baselines"},
    "Store": {"players/store", "lab/results/store"},
    "Experiment": {"inference/experiment", "lab/experiments/experiment"},
    "Table": {"environments/changing", "inference/columns"},  # of rewards, and of rows of a log
    "Settings": {"service/settings", "boosting/settings"},  # of a server, and of a fit
}

# Modules of policies over any policy, and kernels, whose state may be a record of several classes.
GENERIC_MODULES = {
    "aiming",
    "attribution",
    "base",
    "discounted",
    "forgetting",
    "kept_order",
    "learner",
    "restarting",
    "change_test",
    "windowed",
}
GENERIC_STATES = {
    "boltzmann: learn_softmax", "graph_index: best_observer", "graph_index: hand_on", "graph_index: promise",
    "graph_index: share_among_observers", "means: learn_arm", "means: learn_mean",
    "exp3: mixed_probabilities", "thompson: coin", "thompson: learn_posterior", "thompson: posterior_after",
    "ucb: learn_width", "ucbv: learn_squares",
}  # fmt: skip


@cache
def modules() -> dict[str, ast.Module]:
    """Every module by its path below `abex`."""
    return {
        str(path.relative_to(SOURCES).with_suffix("")): ast.parse(path.read_text())
        for path in sorted(SOURCES.rglob("*.py"))
    }


def imported(tree: ast.AST) -> set[str]:
    """The top names of all imports, those inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def name_of(node: ast.AST) -> str:
    """The last name of a decorator."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kernels(tree: ast.AST) -> list[ast.FunctionDef]:
    """The functions that are compiled."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(name_of(d) in KERNELS for d in node.decorator_list)
    ]


def is_number(node: ast.AST) -> bool:
    """A literal whole number, or a constant of the module by its spelling."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return (isinstance(node, ast.Constant) and isinstance(node.value, int)) or (
        isinstance(node, ast.Name) and node.id.isupper()
    )


def indexed_fields(tree: ast.AST) -> set[str]:
    """Fields of records (or names that stand for one) that a kernel indexes by a number."""
    found = set()
    for function in kernels(tree):
        aliases = {
            target.id: node.value.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and is_number(node.slice):
                if isinstance(node.value, ast.Attribute) and node.value.attr != "shape":
                    found.add(node.value.attr)
                elif isinstance(node.value, ast.Name) and node.value.id in aliases:
                    found.add(aliases[node.value.id])
    return found


def by_room(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """ "module: field" of each package."""
    rooms = defaultdict(set)
    for module, fields in found.items():
        room, _, rest = module.rpartition("/")
        rooms[room] |= {f"{rest}: {field}" for field in fields}
    return dict(rooms)


def beyond(found: dict[str, set[str]], known: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is found and not known."""
    new = {key: values - known.get(key, set()) for key, values in found.items()}
    return {key: values for key, values in new.items() if values}


def test_the_compiler_and_the_plots_have_one_room_each():
    wrong = {
        f"{name}: {package}"
        for name, tree in modules().items()
        for package in imported(tree) & ONE_ROOM.keys()
        if not f"{name}/".startswith(f"{ONE_ROOM[package]}/") and (package, name) not in ELSEWHERE
    }
    assert wrong == set()


def test_nobody_asks_which_kind_an_experiment_is():
    """What differs between bandits and boosting is an answer of `CellKind` or `Task`."""
    asked = re.compile(r"""(==|!=|\bin) *\(?["'](bandit|boosting)["']""")
    files = [path for room in LABORATORY for path in sorted((SOURCES / room).rglob("*.py"))]
    assert [path.name for path in files if asked.search(path.read_text())] == []


def test_numbers_of_records_have_names():
    found = by_room({name: indexed_fields(tree) for name, tree in modules().items()})
    assert beyond(found, FIRST_PLACES) == {}


def test_a_module_is_told_from_others_by_its_name():
    places = defaultdict(set)
    for name in modules():
        room, _, module = name.rpartition("/")
        if not module.startswith("__") and room != "cli":  # a command is called as the room that it opens
            places[module].add(room)
    assert beyond({module: rooms for module, rooms in places.items() if len(rooms) > 1}, SHARED_NAMES) == {}


def test_a_class_is_told_from_others_by_its_name():
    places = defaultdict(set)
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(name)
    assert beyond({cls: where for cls, where in places.items() if len(where) > 1}, SHARED_CLASSES) == {}


def test_modules_are_named_by_concepts():
    assert {name for name in modules() if name.rpartition("/")[2] in UNTOLD} == set()


def test_kernels_of_policies_say_whose_state_they_take():
    found = set()
    for name, tree in modules().items():
        if name.startswith("policies/") and name.removeprefix("policies/") not in GENERIC_MODULES:
            for function in kernels(tree):
                for argument in function.args.args:
                    if argument.arg == "state" and name_of(argument.annotation) == "Any":
                        found.add(f"{name.removeprefix('policies/')}: {function.name}")
    assert found <= GENERIC_STATES


# -- the checks see what they look for ---------------------------------------------------------------

BAD = """
import math
FOUND = 2

@kernel
def step(state: Any, t: int) -> int:
    clock = state.clock
    state.grid[1] += 1
    size = state.means.shape[0]
    return clock[FOUND] + state.means[t]

def plain(state):
    from numba import njit
    return state.clock[0]
"""


def test_the_checks_can_fail():
    tree = ast.parse(BAD)
    assert indexed_fields(tree) == {"clock", "grid"}
    assert imported(tree) == {"math", "numba"}
    assert beyond({"a": {"x", "y"}, "b": {"z"}}, {"a": {"x"}, "b": {"z"}}) == {"a": {"y"}}
    assert by_room({"policies/a": {"clock"}, "b": {"x"}}) == {"policies": {"a: clock"}, "": {"b: x"}}


@each("text", ["x[1]", "x[-1]", "x[FOUND]"])
def test_what_counts_as_a_number(text):
    assert is_number(ast.parse(text, mode="eval").body.slice)


def test_arms_are_no_numbers():
    assert not is_number(ast.parse("x[arm]", mode="eval").body.slice)


def test_the_glossary_is_short_and_in_order():
    words = re.findall(r"^(\S.*)\n: ", (SOURCES.parents[1] / "docs/glossary.md").read_text(), re.M)
    assert 10 < len(words) <= 25
    assert words == sorted(words)


def test_the_page_of_the_architecture_lists_what_is_there():
    """Where it does not, ``python -m benchmarks.architecture`` writes its lists, also after a conflict."""
    page, found = architecture.PAGE.read_text(), lines.by_room(lines.here())
    assert architecture.marked(page, "layers").strip() == architecture.layers()
    rooms = re.findall(r"^\| `(.*?)` \| (.*?) \|", architecture.marked(page, "rooms"), re.M)
    assert dict(rooms) == {room: architecture.holds(room) for room in found}
    listed = re.findall(r"^- `(.*?)`: (.*)$", architecture.marked(page, "files"), re.M)
    modules = {room: set(architecture.modules(files, room)) for room, files in found.items()}
    assert {room: set(names.split(", ")) for room, names in listed} == {
        room: names for room, names in modules.items() if names
    }
    ways = re.findall(r"^\| .* \| \d+ \| (.*) \|$", architecture.marked(page, "ways"), re.M)
    crossed = {
        name for way in ways for names in re.findall(r": ([\w, ]+)", way) for name in names.split(", ")
    }
    assert len(ways) == 8
    assert crossed <= {name.rpartition("/")[2] for names in modules.values() for name in names} | {"__init__"}

"""Problems as plain data: what a cell says about environment, graph and data, and how they are made from it.

A bandit problem is one of::

    {"environment": {"name": "Bernoulli", "means": [0.9, 0.1]}, "graph": {"name": "star", "n": 2}}
    {"environment": {"name": "SpecialArm", "K": 333}, "graph": {"name": "facebook-0", "checksum": "..."}}
    {"environment": {...}, "delay": "Geometric(200)", "batch": 32}
    {"recommendation": {"name": "epinions", "part": "test", "direction": "out", "seed": 0, "checksum": "..."}}

and one of boosting, by stumps unless it says otherwise::

    {"data": "letter", "part": "validation", "base": "tree", "leaves": 8}

Whatever comes from files carries its checksum, so other data are another problem.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from abex.environments.environment import known_environments
from abex.lab.results import canonical
from abex.support.errors import UserError, brief, nearest, one_of, shown
from abex.support.reading import check_size

Spec = dict[str, Any]
BANDIT: dict[str, type] = {
    "environment": dict,
    "graph": dict,
    "recommendation": dict,
    "delay": str,
    "batch": int,
}
WANTED = {str: "a text", int: "a whole number", dict: "a table such as {name = '...'}"}
BOOSTING: dict[str, type] = {"data": str, "part": str, "base": str, "leaves": int, "checksum": str}


class MissingData(UserError):  # noqa: N818 - said to a person, in a sentence
    """The data of a problem are not on this machine and could not be fetched."""


def bandit_problem(problem: Spec) -> tuple[Any, Any]:
    """Environment and graph of a problem; data must have the checksum the problem names.

    >>> environment, graph = bandit_problem({"environment": {"name": "Bernoulli", "means": [0.9, 0.1]}})
    >>> environment.n_arms, graph
    (2, None)
    """
    check_problem(problem, BANDIT)
    if "recommendation" in problem:
        return _recommendation(problem["recommendation"])
    if "environment" not in problem:
        raise UserError(
            "a problem needs an environment, for example {name = 'Bernoulli', means = [0.9, 0.1]}"
        )
    environment = environment_of(problem["environment"])
    check_size(8 * environment.n_arms, f"an environment of {environment.n_arms:,} arms")
    return environment, graph_of(problem.get("graph"))


def check_problem(problem: Spec, known: dict[str, type]) -> None:
    """Refuse keys that mean nothing, values of the wrong kind, and what JSON cannot hold.

    >>> check_problem({"data": [1]}, BOOSTING)
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: data must be a text, got [1]
    """
    for word, value in problem.items():
        if word not in known:
            raise UserError(
                f"a problem has no key {shown(word)}{nearest(brief(word), known)}; it has: {', '.join(known)}"
            )
        if value is None:
            continue
        if not isinstance(value, known[word]) or isinstance(value, bool):
            raise UserError(f"{word} must be {WANTED[known[word]]}, got {shown(value)}")
        if isinstance(value, dict) and not isinstance(value.get("name", ""), str):
            raise UserError(f"{word}.name must be a text, got {shown(value['name'])}")
    try:
        canonical(problem)
    except RecursionError:
        raise UserError("a problem has too many lists or tables within each other") from None


def late_rewards(problem: Spec, environment: Any) -> tuple[Any, int]:
    """How late the rewards of a problem come, and in batches of how many decisions.

    >>> late_rewards({"delay": "Fixed(50)", "batch": 32}, None)
    (Fixed(steps=50, never=0.0), 32)
    """
    from abex.simulation import as_late_rewards

    batch = problem.get("batch")
    return as_late_rewards(problem.get("delay"), 1 if batch is None else batch, environment)


def environment_of(spec: Spec) -> Any:
    """The environment ``{"name": ..., parameter: value, ...}``."""
    choices = known_environments()
    if spec.get("name") not in choices:
        choices = known_environments(installed=True)
    return _made("environment", spec, choices)


def graph_of(spec: Spec | None) -> Any:
    """The graph ``{"name": ...}``: a generator with its parameters, or a network among the data sets."""
    if spec is None:
        return None
    import abex.graphs
    from abex.lab import datasets

    makers: dict[str, Any] = {
        name: maker for name in abex.graphs.__all__ if inspect.isfunction(maker := getattr(abex.graphs, name))
    }
    makers |= {"edges": _listed_edges, "DropOut": _drop_out, "GraphSequence": _sequence}
    makers["ErdosRenyiEachStep"] = abex.graphs.ErdosRenyiEachStep
    networks = [name for name in datasets.names() if name.startswith("facebook")]
    name = one_of("graph", spec.get("name"), [*makers, *networks])
    if name in makers:
        return _made("graph", spec, makers)
    network = datasets.load(name)
    _check(name, network.checksum, spec)
    return abex.graphs.Graph.from_edges(network.edges, network.n_nodes, directed=network.directed)


def _listed_edges(n: int, edges: Any, directed: bool = False) -> Any:
    """The graph of these edges, written down one by one."""
    from abex.graphs import Graph

    return Graph.from_edges([tuple(edge) for edge in edges], n, directed=directed)


def _drop_out(graph: Spec, keep: float) -> Any:
    """A graph whose edges are there with a probability, drawn at each step."""
    from abex.graphs import DropOut

    return DropOut(graph_of(graph), keep=keep)


def _sequence(graphs: Any) -> Any:
    """Graphs that take turns."""
    from abex.graphs import GraphSequence

    return GraphSequence([graph_of(graph) for graph in graphs])


def _recommendation(spec: Spec) -> tuple[Any, Any]:
    from abex.environments import RatingTable
    from abex.graphs import Graph

    data = _completed(
        canonical({k: v for k, v in spec.items() if k not in ("part", "direction", "checksum")})
    )
    _check(str(spec.get("name")), data.table.checksum, spec)
    environment = RatingTable(data.table, data.products(spec.get("part", "test")))
    graph = Graph.from_edges(data.edges(spec.get("direction", "out")), data.n_users, directed=True)
    return environment, graph


@lru_cache(maxsize=2)
def _completed(text: str) -> Any:
    """The completed, binarised table of a recommendation problem; both parts share it."""
    import json

    from abex.lab import datasets

    spec = json.loads(text)
    name, seed = spec.pop("name", None), spec.pop("seed", 0)
    more_than = spec.pop("more_than", 30)
    if name == "synthetic":
        source: Any = _made(
            "ratings", {**spec, "name": name, "seed": seed}, {name: datasets.synthetic_ratings}
        )
    else:
        source = one_of("ratings", name, ("epinions", "synthetic"))
        if spec:
            raise UserError(f"the ratings {name!r} have no parameter {sorted(spec)[0]!r}")
    return datasets.recommendation(source, seed=seed, more_than=more_than)


def with_checksums(problem: Spec) -> Spec:
    """The problem with the checksum of the data it uses; this loads them."""
    try:
        return _with_checksums(dict(problem))
    except UserError as error:
        if data_of(problem) is None:
            raise
        raise MissingData(str(error)) from error


def _with_checksums(problem: Spec) -> Spec:
    check_problem(problem, BOOSTING if "data" in problem else BANDIT)
    if "recommendation" in problem:
        spec = dict(problem["recommendation"])
        plain = {k: v for k, v in spec.items() if k not in ("part", "direction", "checksum")}
        spec["checksum"] = _completed(canonical(plain)).table.checksum
        problem["recommendation"] = spec
    if "data" in problem:
        from abex.lab import datasets

        problem["checksum"] = datasets.load(problem["data"]).checksum
    name = (problem.get("graph") or {}).get("name", "")
    if name.startswith("facebook"):
        from abex.lab import datasets

        problem["graph"] = {**problem["graph"], "checksum": datasets.load(name).checksum}
    return problem


def data_of(problem: Spec) -> str | None:
    """The name of the data set a problem needs, None if it needs none."""
    try:
        check_problem(problem, {**BANDIT, **BOOSTING})
    except UserError:
        return None
    name = problem.get("data") or (problem.get("recommendation") or {}).get("name")
    name = name or (problem.get("graph") or {}).get("name", "")
    return name if name == "epinions" or name.startswith("facebook") or "data" in problem else None


def _check(name: str, checksum: str, spec: Spec) -> None:
    wanted = spec.get("checksum")
    if wanted is not None and wanted != checksum:
        raise UserError(
            f"the data set {name!r} here is not the one the cell was made for "
            f"(checksum {checksum[:12]}, wanted {wanted[:12]}): `abex data check` tells which file differs"
        )


def _made(what: str, spec: Spec, choices: dict[str, Any]) -> Any:
    """``choices[name](**parameters)`` with errors that name the nearest right word."""
    parameters = dict(spec)
    name = one_of(what, parameters.pop("name", None), choices)
    known = list(inspect.signature(choices[name]).parameters)
    for word in parameters:
        if word not in known:
            raise UserError(
                f"{name} has no parameter {shown(word)}{nearest(brief(word), known)}; it has: {brief(', '.join(known))}"
            )
    asked = inspect.signature(choices[name]).parameters.values()
    needed = [one.name for one in asked if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if missing := [word for word in needed if word not in parameters]:
        raise UserError(f"the {what} {name} needs {' and '.join(missing)}; it has: {brief(', '.join(known))}")
    try:
        return choices[name](**parameters)
    except TypeError as error:
        raise UserError(f"cannot make the {what} {name}: {brief(str(error), 120)}") from error

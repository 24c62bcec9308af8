"""A person's own experiment: a TOML file, read strictly."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from abex.lab.experiments.experiment import STRATUM, Claim, Experiment, Line, equivalent_policies, policy_text
from abex.lab.sweeps.boosting_cells import FULL_SEARCH
from abex.lab.sweeps.cells import TASKS, load_code, task_of
from abex.lab.sweeps.problems import MissingData, with_checksums
from abex.lab.sweeps.task import Task
from abex.policies.naming import parse_policy
from abex.simulation import MAX_HORIZON
from abex.support.errors import UserError, brief, nearest, shown
from abex.support.files import read_text
from abex.support.reading import reader_errors, short_path

MAX_TEXT = 10**6  # characters of an experiment's file
MAX_CHECKPOINTS = 100_000
HINT = " (the keys of the experiment itself stand above the first [table])"
AS_WRITTEN = ("name", "kind", "version", "seeds", "seed", "validation_seeds", "checkpoints", "claims")
Length = Annotated[int, Meta(ge=1, le=MAX_HORIZON)]
Count = Annotated[int, Meta(ge=1, le=STRATUM)]


class _Line(Struct, forbid_unknown_fields=True):
    policy: str | None = None
    candidates: list[str] | None = None
    label: str | None = None
    tuned_at: Length | None = None


class _File(Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    title: str = ""
    kind: str = "bandit"
    version: Length = 1
    problem: dict[str, Any]
    validation: dict[str, Any] | None = None
    policies: list[str | _Line]
    own: list[str] = []
    horizon: Length | None = None
    iterations: Length | None = None
    seeds: Count = 20
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    validation_seeds: Count = 5
    checkpoints: Annotated[int, Meta(ge=2, le=MAX_CHECKPOINTS)] = 100
    claims: tuple[Claim, ...] = ()


def read_experiment(path: str | Path) -> Experiment:
    """The experiment of a TOML file; an error names the file, the key and the nearest right one."""
    text = read_text(path, "experiment")
    if len(text) > MAX_TEXT:
        raise UserError(
            f"{short_path(path)} is too long for an experiment: {len(text):,} characters, at most {MAX_TEXT:,}"
        )
    with reader_errors(f"read {short_path(path)} as TOML"):
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{short_path(path)} is not TOML: {brief(str(error), 90)}") from error
    try:
        plain = msgspec.convert(content, _File, strict=False)  # 1e5 is a whole number to a person
    except msgspec.ValidationError as error:
        raise UserError(f"{short_path(path)}: {_sentence(str(error))}") from error
    try:
        return _experiment(plain, Path(path))
    except MissingData:  # which has a sentence of its own
        raise
    except UserError as error:
        raise type(error)(f"{short_path(path)}: {error}") from error


def _experiment(plain: _File, path: Path) -> Experiment:
    code = {name: read_text(path.parent / name, "policies") for name in plain.own}
    load_code(code)
    task = task_of(plain.kind)
    length = _length(plain, task)
    for each in (plain.problem, plain.validation or plain.problem):
        task.check(each)
    problem, validation = with_checksums(plain.problem), plain.validation
    lines = tuple(_line(number, one, code) for number, one in enumerate(plain.policies))
    for text in (text for one in lines for text in one.candidates if text != FULL_SEARCH):
        task.check_policy(parse_policy(text), problem)
    n_arms = task.arms(problem)
    return Experiment(
        **{key: getattr(plain, key) for key in AS_WRITTEN},
        title=plain.title or plain.name,
        problem=problem,
        validation=None if validation is None else with_checksums(validation),
        lines=lines,
        equivalent={} if n_arms is None else equivalent_policies(lines, n_arms, length, code),
        length=length,
        command=f"abex run {path.name}",
        code=code,
    )


def _length(plain: _File, task: Task) -> int:
    """The length of the runs, under the key of the task and no other's."""
    key = task.length
    for other in TASKS.values():
        if other.length != key and getattr(plain, other.length) is not None:
            raise UserError(f"{other.length} is not for the kind {plain.kind!r}: write {key}")
    length: int | None = getattr(plain, key)
    if length is None:
        raise UserError(f"{key} is missing")
    return length


def _line(number: int, one: str | _Line, code: dict[str, str]) -> Line:
    one = _Line(policy=one) if isinstance(one, str) else one
    if (one.policy is None) == (one.candidates is None):
        raise UserError(f"policies.{number} needs either policy or candidates")
    texts = [one.policy] if one.policy is not None else one.candidates or []
    label = one.label or (texts[0] if len(texts) == 1 else f"the best of {', '.join(texts)}")
    return Line(label, tuple(policy_text(text, code) for text in texts), tuned_at=one.tuned_at)


def _sentence(said: str) -> str:
    """The mistake that msgspec found, in words.

    >>> _sentence("Object contains unknown field `polici` - at `$.policies[1]`")
    "unknown key 'polici' in policies[1] (did you mean 'policy'?)"
    >>> _sentence("Expected `int` >= 1 - at `$.seeds`")
    'seeds: expected `int` >= 1'
    """
    reason, _, place = said.partition(" - at `$.")
    where = place.rstrip("`")
    field = re.search(r"field `(.*)`", reason)
    if field is None:
        return f"{brief(where)}: {reason[:1].lower()}{brief(reason[1:], 80)}"
    if "unknown" in reason:
        known = {"policies": _Line, "claims": Claim}.get(where.partition("[")[0], _File).__struct_fields__
        return f"unknown key {shown(field[1])}{where and f' in {where}'}{nearest(brief(field[1]), known)}"
    return f"the key {field[1]!r} is missing{f' in {where}' if where else HINT}"

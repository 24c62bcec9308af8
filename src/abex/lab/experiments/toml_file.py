"""A person's own experiment: a TOML file, read strictly."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

from abex.lab.experiments.experiment import STRATUM, Claim, Experiment, Line, policy_text, same_policies
from abex.lab.experiments.tasks import TASKS, Task, task_of
from abex.lab.sweeps.boosting_cells import FULL_SEARCH
from abex.lab.sweeps.cells import load_code
from abex.lab.sweeps.problems import with_checksums
from abex.policies.naming import parse_policy
from abex.simulation import MAX_HORIZON
from abex.support.errors import UserError, brief, nearest, shown
from abex.support.extras import needed
from abex.support.files import read_text
from abex.support.reading import reader_errors, short_path

with needed():
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _whole(value: Any) -> Any:
    """1e5 is a whole number to a person."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


MAX_TEXT = 10**6  # characters of an experiment's file
MAX_CHECKPOINTS = 100_000
Whole = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=MAX_HORIZON)]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=STRATUM)]
Checkpoints = Annotated[int, BeforeValidator(_whole), Field(ge=2, le=MAX_CHECKPOINTS)]
Seed = Annotated[int, BeforeValidator(_whole), Field(ge=0, lt=2**63)]


class _Line(_Strict):
    policy: str | None = None
    candidates: list[str] | None = None
    label: str | None = None
    tuned_at: Whole | None = None


class _Claim(_Strict):
    text: str
    rule: str = "better"
    first: str
    second: list[str] = Field(default_factory=list)
    margin: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0
    at: Whole | None = None


def _as_table(value: Any) -> Any:
    return {"policy": value} if isinstance(value, str) else value


class _File(_Strict):
    name: str
    title: str = ""
    kind: str = "bandit"
    version: Whole = 1
    problem: dict[str, Any]
    validation: dict[str, Any] | None = None
    policies: list[Annotated[_Line, BeforeValidator(_as_table)]]
    own: list[str] = Field(default_factory=list)
    horizon: Whole | None = None
    iterations: Whole | None = None
    seeds: Count = 20
    seed: Seed = 1
    validation_seeds: Count = 5
    checkpoints: Checkpoints = 100
    claims: list[_Claim] = Field(default_factory=list)


_TABLES: dict[str, type[BaseModel]] = {"policies": _Line, "claims": _Claim}


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
        plain = _File.model_validate(content)
    except ValidationError as error:
        raise UserError(
            f"{short_path(path)}: {_together([_sentence(one) for one in error.errors()])}"
        ) from error
    try:
        return _experiment(plain, Path(path))
    except UserError as error:
        raise type(error)(f"{short_path(path)}: {error}") from error


def _experiment(plain: _File, path: Path) -> Experiment:
    code = {name: read_text(path.parent / name, "policies") for name in plain.own}
    load_code(code)
    task = task_of(plain.kind)
    length = _length(plain, task)
    task.check(plain.problem)
    if plain.validation:
        task.check(plain.validation)
    problem, validation = with_checksums(plain.problem), plain.validation
    lines = tuple(_line(number, one, code) for number, one in enumerate(plain.policies))
    for text in (text for one in lines for text in one.candidates if text != FULL_SEARCH):
        task.check_policy(parse_policy(text), problem)
    n_arms = task.arms(problem)
    return Experiment(
        name=plain.name,
        title=plain.title or plain.name,
        kind=plain.kind,
        version=plain.version,
        problem=problem,
        validation=None if validation is None else with_checksums(validation),
        lines=lines,
        same={} if n_arms is None else same_policies(lines, n_arms, length, code),
        length=length,
        seeds=plain.seeds,
        seed=plain.seed,
        validation_seeds=plain.validation_seeds,
        checkpoints=plain.checkpoints,
        claims=tuple(
            Claim(c.text, c.rule, c.first, tuple(c.second), c.margin, at=c.at) for c in plain.claims
        ),
        command=f"abex run {path.name}",
        code=code,
    )


def _length(plain: _File, task: Task) -> int:
    """The length of the runs, under the key of the task and no other's."""
    key = task.cells.length
    for other in TASKS.values():
        if other.cells.length != key and getattr(plain, other.cells.length) is not None:
            raise UserError(f"{other.cells.length} is not for the kind {plain.kind!r}: write {key}")
    length: int | None = getattr(plain, key)
    if length is None:
        raise UserError(f"{key} is missing")
    return length


def _line(number: int, one: _Line, code: dict[str, str]) -> Line:
    if (one.policy is None) == (one.candidates is None):
        raise UserError(f"policies.{number} needs either policy or candidates")
    texts = [one.policy] if one.policy is not None else one.candidates or []
    label = one.label or (texts[0] if len(texts) == 1 else f"the best of {', '.join(texts)}")
    return Line(label, tuple(policy_text(text, code) for text in texts), tuned_at=one.tuned_at)


def _together(mistakes: list[str], most: int = 108) -> str:
    """As many mistakes as fit into a sentence, one at least.

    >>> _together(["a is missing", "b is missing"]), _together(["x" * 99, "y"], most=99)[-12:]
    ('a is missing; b is missing', '; and 1 more')
    """
    told = mistakes[:1]
    for mistake in mistakes[1:]:
        if len("; ".join([*told, mistake])) > most:
            break
        told.append(mistake)
    left = len(mistakes) - len(told)
    return "; ".join([*told, f"and {left} more"] if left else told)


def _sentence(error: Any) -> str:
    """One mistake that pydantic found, in words."""
    *above, key = error["loc"]
    where = ".".join(str(part) for part in error["loc"])
    model = _TABLES.get(str(above[0]), _File) if above else _File
    if error["type"] == "extra_forbidden":
        return f"unknown key {shown(where)}{nearest(brief(str(key)), model.model_fields)}"
    if error["type"] == "missing":
        hint = "" if above else " (the keys of the experiment itself stand above the first [table])"
        return f"the key {where!r} is missing{hint}"
    reason = str(error["msg"])
    return (
        f"{brief(where)}: {reason[0].lower()}{brief(reason[1:], 80)}, got {brief(shown(error['input']), 40)}"
    )

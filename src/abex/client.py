"""A client of `abex serve`: sync and async, with retries that cannot count twice (extra ``client``: httpx).

A request whose answer is lost may have been carried out. So a decision is asked for under a key that is drawn once, and asked
again it is the same decision; a reward belongs to its decision and counts once; an observation has a key. These are repeated when
the connection breaks or the service says "later" (429, 502, 503, 504), with growing pauses, until ``patience`` is over. What
could count twice (adding an arm) is sent once.

>>> client = Client("http://localhost:8080")  # doctest: +SKIP
>>> choice = client.decide("banner", unit="ann")  # doctest: +SKIP
>>> client.reward("banner", choice.id, 1.0)  # doctest: +SKIP
True
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from abex.support.errors import UserError
from abex.support.extras import needed

with needed():
    import httpx

PATIENCE = 30.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LATER = frozenset({429, 502, 503, 504})
Arm = str | int
Rewards = Mapping[Any, float]  # of other arms
JSON = dict[str, Any]
T = TypeVar("T")


class ServiceError(UserError):
    """The service refused; ``status`` is its HTTP status, 0 if it could not be reached."""

    def __init__(self, sentence: object = "", status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Choice:
    """A decision of the service: report its reward by ``id``."""

    id: str
    arm: Arm
    probability: float | None
    player: str | None = None  # who decided, where an alias was asked


@dataclass(frozen=True)
class Export:
    """A player with all it knows: `Player.load` reads the ``content`` as a file; ``tag`` names its last event."""

    content: bytes
    tag: str


@dataclass(frozen=True)
class _Call(Generic[T]):
    """A request, how its answer is read, and whether it may be repeated."""

    method: str
    path: str
    body: Any
    parse: Callable[[httpx.Response], T]
    repeatable: bool = True
    headers: Mapping[str, str] | None = None


def _create(name: str, arms: Sequence[Arm] | int, policy: str, terms: Mapping[str, Any]) -> _Call[JSON]:
    wanted = arms if isinstance(arms, int) else list(arms)
    return _Call("POST", "/v1/players", {"name": name, "policy": policy, "arms": wanted, **terms}, _json)


def _players() -> _Call[list[str]]:
    return _Call("GET", "/v1/players", None, lambda answer: [one["name"] for one in _json(answer)["players"]])


def _decide(player: str, unit: str | None) -> _Call[Choice]:
    body = _given(key=_key(), unit=unit)
    return _Call("POST", _of(player, "/decisions"), body, lambda answer: Choice(**_json(answer)))


def _decide_many(player: str, count: int | None, units: Sequence[str | None] | None) -> _Call[list[Choice]]:
    body = _given(key=_key(), **({"count": count} if units is None else {"units": list(units)}))

    def parse(answer: httpx.Response) -> list[Choice]:
        return [Choice(**one) for one in _json(answer)["decisions"]]

    return _Call("POST", _of(player, "/decisions/batch"), body, parse)


def _reward(
    player: str,
    decision: str,
    reward: float,
    also: Rewards | None,
    key: str | None,
    corrects: bool | None = None,
) -> _Call[bool]:
    body = _given(decision=decision, reward=reward, also=_named(also), key=key, corrects=corrects)
    return _Call("POST", _of(player, "/rewards"), body, _learned)


def _reward_many(player: str, rewards: Iterable[tuple[str, float]]) -> _Call[list[bool]]:
    body = {"rewards": [{"decision": decision, "reward": reward} for decision, reward in rewards]}
    return _Call("POST", _of(player, "/rewards/batch"), body, _learned)


def _observe(player: str, arm: Arm, reward: float, also: Rewards | None) -> _Call[bool]:
    body = _given(arm=arm, reward=reward, also=_named(also), key=_key())
    return _Call("POST", _of(player, "/observations"), body, _learned)


def _add_arm(player: str, name: Arm | None) -> _Call[Arm]:
    path = _of(player, "/arms")
    return _Call("POST", path, {"name": name}, lambda answer: _json(answer)["arm"], repeatable=False)


def _rename_arm(player: str, arm: Arm, name: Arm) -> _Call[None]:
    return _Call("PATCH", _arm(player, arm), {"name": name}, lambda answer: None, repeatable=False)


def _remove_arm(player: str, arm: Arm) -> _Call[None]:
    return _Call("DELETE", _arm(player, arm), None, lambda answer: None, repeatable=False)


def _summary(player: str, limit: int) -> _Call[JSON]:
    return _Call("GET", _of(player, f"/summary?limit={limit}"), None, _json)


def _probabilities(player: str) -> _Call[dict[Arm, float]]:
    def parse(answer: httpx.Response) -> dict[Arm, float]:
        return {one["arm"]: one["probability"] for one in _json(answer)["probabilities"]}

    return _Call("GET", _of(player, "/probabilities"), None, parse)


def _winner(player: str, risk: float, at_least: float | None) -> _Call[JSON]:
    more = "" if at_least is None else f"&at_least={at_least!r}"
    return _Call("GET", _of(player, f"/winner?risk={risk!r}{more}"), None, _json)


def _evaluate(player: str, policies: Sequence[str], learn: float) -> _Call[JSON]:
    return _Call("POST", _of(player, "/evaluate"), {"policies": list(policies), "learn": learn}, _json)


def _log(player: str, format: str, last: int | None) -> _Call[bytes]:
    query = httpx.QueryParams(_given(format=format, last=last))
    return _Call("GET", _of(player, f"/log?{query}"), None, lambda answer: answer.content)


def _export(player: str) -> _Call[Export]:
    path = _of(player, "/export")
    return _Call("GET", path, None, lambda answer: Export(answer.content, answer.headers["etag"]))


def _delete(player: str, tag: str) -> _Call[None]:
    return _Call("DELETE", _of(player, ""), None, lambda answer: None, False, {"if-match": tag})


def _archive(player: str, tag: str) -> _Call[None]:
    return _Call("POST", _of(player, "/archive"), None, lambda answer: None, True, {"if-match": tag})


def _restore(player: str) -> _Call[None]:
    return _Call("POST", _of(player, "/restore"), None, lambda answer: None)


def _aliases() -> _Call[dict[str, dict[str, int]]]:
    return _Call("GET", "/v1/players?limit=1", None, lambda answer: _json(answer)["aliases"])


def _alias(name: str, split: Mapping[str, int]) -> _Call[None]:
    return _Call("PUT", _alias_path(name), {"split": dict(split)}, lambda answer: None)


def _rollback(name: str) -> _Call[dict[str, int]]:
    path = f"{_alias_path(name)}/rollback"
    return _Call("POST", path, {"key": _key()}, lambda answer: _json(answer)["split"])


def _remove_alias(name: str) -> _Call[None]:
    return _Call("DELETE", _alias_path(name), None, lambda answer: None, repeatable=False)


def _changes(last: int, before: int | None) -> _Call[list[JSON]]:
    query = httpx.QueryParams(_given(limit=last, before=before))
    return _Call("GET", f"/v1/changes?{query}", None, lambda answer: _json(answer)["changes"])


def _alias_path(name: str) -> str:
    return f"/v1/aliases/{quote(name, safe='')}"


def _of(player: str, rest: str) -> str:
    return f"/v1/players/{quote(player, safe='')}{rest}"


def _arm(player: str, arm: Arm) -> str:
    return _of(player, f"/arms/{quote(str(arm), safe='')}")


def _key() -> str:
    """Sent again under its key a request counts once."""
    return str(uuid.uuid4())


def _given(**fields: Any) -> JSON:
    return {name: value for name, value in fields.items() if value is not None}


def _named(also: Rewards | None) -> dict[str, float] | None:
    return None if also is None else {str(arm): paid for arm, paid in also.items()}


def _json(answer: httpx.Response) -> Any:
    return answer.json()


def _learned(answer: httpx.Response) -> Any:
    return answer.json()["learned"]


class _Attempts:
    """Counts the attempts of one call; says how long to wait, or raises."""

    answer: httpx.Response  # when it is done

    def __init__(self, call: _Call[Any], patience: float) -> None:
        self._call, self._until, self._pause = call, time.monotonic() + patience, FIRST_PAUSE

    def judge(self, answer: httpx.Response | httpx.TransportError) -> float | None:
        """None if it is done; else the seconds to wait before the next attempt."""
        if isinstance(answer, httpx.Response):
            if answer.is_success:
                self.answer = answer
                return None
            error = ServiceError(_sentence(answer), answer.status_code)
            again = answer.status_code in LATER
            named = answer.headers.get("retry-after", "")
        else:
            error = ServiceError(f"cannot reach the service: {answer or type(answer).__name__}")
            again, named = self._call.repeatable, ""
        pause = self._pause * random.uniform(0.5, 1.0)
        if named.replace(".", "", 1).isdigit():
            pause = min(
                LONGEST_PAUSE, max(pause, min(float(named), LONGEST_PAUSE) * random.uniform(0.05, 1.0))
            )
        if not again or time.monotonic() + pause > self._until:
            raise error
        self._pause = min(LONGEST_PAUSE, 2.0 * self._pause)
        return pause


def _sentence(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {answer.status_code}"


class _Connected:
    """What both clients are made from."""

    _http_client: type[httpx.Client | httpx.AsyncClient]
    _http: Any

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        patience: float = PATIENCE,
        timeout: float = 10.0,
        **options: Any,
    ) -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        given: dict[str, Any] = {"base_url": url, "headers": headers, "timeout": timeout}
        self._patience = patience
        self._http = self._http_client(**given | options)


class Client(_Connected, AbstractContextManager["Client"]):
    """A service, from ordinary code; may be shared by threads.

    Parameters
    ----------
    url : str
        Such as ``http://localhost:8080``.
    key : str, optional
        API key.
    patience : float
        Seconds for which a call is repeated when the service cannot be reached or says "later".
    timeout : float
        Seconds to wait for one answer.
    """

    _http_client = httpx.Client
    _http: httpx.Client

    def _do(self, call: _Call[T]) -> T:
        attempts = _Attempts(call, self._patience)
        while (pause := attempts.judge(self._try(call))) is not None:
            time.sleep(pause)
        return call.parse(attempts.answer)

    def _try(self, call: _Call[Any]) -> httpx.Response | httpx.TransportError:
        try:
            return self._http.request(call.method, call.path, json=call.body, headers=call.headers)
        except httpx.TransportError as error:
            return error

    def create(self, name: str, arms: Sequence[Arm] | int, policy: str = "Evidence", **terms: Any) -> JSON:
        """Make a player; nothing happens if there is the same one. ``terms``: horizon, rewards, expire, unrewarded, edges."""
        return self._do(_create(name, arms, policy, terms))

    def players(self) -> list[str]:
        """Their names."""
        return self._do(_players())

    def decide(self, player: str, unit: str | None = None) -> Choice:
        """What to try next; a unit gets the same choice until that is rewarded or expires."""
        return self._do(_decide(player, unit))

    def decide_many(
        self, player: str, count: int | None = None, *, units: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """``count`` choices of different arms, or one for each of ``units``."""
        return self._do(_decide_many(player, count, units))

    def reward(
        self,
        player: str,
        decision: str,
        reward: float,
        also: Rewards | None = None,
        key: str | None = None,
    ) -> bool:
        """The reward of a decision; False if it had one already, has expired or is forgotten.

        Also False if an attempt of this call, whose answer was lost, has reported it: it counts once. Where a decision may have
        several conversions, each has a ``key``, such as an order's number.
        """
        return self._do(_reward(player, decision, reward, also, key))

    def correct(self, player: str, decision: str, reward: float, key: str | None = None) -> bool:
        """What a decision really paid, or its conversion under a ``key``; False if that is known, or its time is over."""
        return self._do(_reward(player, decision, reward, None, key, True))

    def reward_many(self, player: str, rewards: Iterable[tuple[str, float]]) -> list[bool]:
        """Rewards of several decisions: all are learned, or none if one is wrong."""
        return self._do(_reward_many(player, rewards))

    def observe(self, player: str, arm: Arm, reward: float, also: Rewards | None = None) -> bool:
        """What an arm paid that was tried without a decision of the player."""
        return self._do(_observe(player, arm, reward, also))

    def add_arm(self, player: str, name: Arm | None = None) -> Arm:
        """An arm never seen; sent once."""
        return self._do(_add_arm(player, name))

    def rename_arm(self, player: str, arm: Arm, name: Arm) -> None:
        """Another name for an arm; sent once."""
        self._do(_rename_arm(player, arm, name))

    def remove_arm(self, player: str, arm: Arm) -> None:
        """Remove an arm for ever; sent once."""
        self._do(_remove_arm(player, arm))

    def summary(self, player: str, limit: int = 100) -> JSON:
        """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
        return self._do(_summary(player, limit))

    def probabilities(self, player: str) -> dict[Arm, float]:
        """The probability of each arm at the next decision."""
        return self._do(_probabilities(player))

    def winner(self, player: str, risk: float = 0.05, at_least: float | None = None) -> JSON:
        """The best arm with a stated risk, or how long it takes to know; one may ask as often as one likes."""
        return self._do(_winner(player, risk, at_least))

    def evaluate(self, player: str, policies: Sequence[str], learn: float = 0.5) -> JSON:
        """What other policies would have earned, from the log of this player."""
        return self._do(_evaluate(player, policies, learn))

    def log(self, player: str, format: str = "csv", last: int | None = None) -> bytes:
        """Every decision with its probability and reward, as the content of a csv, parquet or dsjson file."""
        return self._do(_log(player, format, last))

    def export(self, player: str) -> Export:
        """The player with all it knows, as the content of a file."""
        return self._do(_export(player))

    def archive(self, player: str, tag: str) -> None:
        """Let a player rest until `restore`; ``tag`` is that of an export after its last event."""
        self._do(_archive(player, tag))

    def restore(self, player: str) -> None:
        """Bring back a player that was archived."""
        self._do(_restore(player))

    def delete(self, player: str, tag: str) -> None:
        """Delete a player and its journal for ever; ``tag`` is that of an export after its last event. Sent once."""
        self._do(_delete(player, tag))

    def aliases(self) -> dict[str, dict[str, int]]:
        """Where each alias sends units: per cent by player."""
        return self._do(_aliases())

    def alias(self, name: str, split: Mapping[str, int]) -> None:
        """Let a name stand for players, each for so many per cent of the units."""
        self._do(_alias(name, split))

    def rollback(self, name: str) -> dict[str, int]:
        """Bring back the split that an alias had before its last change, and return it."""
        return self._do(_rollback(name))

    def remove_alias(self, name: str) -> None:
        """Let a name stand for nothing any more; sent once."""
        self._do(_remove_alias(name))

    def changes(self, last: int = 100, before: int | None = None) -> list[JSON]:
        """Who changed what, the latest first; ``before`` a number ``seq``, to go on."""
        return self._do(_changes(last, before))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(_Connected):
    """A service, from asyncio: what a web application uses while it answers; see `Client` for the parameters."""

    _http_client = httpx.AsyncClient
    _http: httpx.AsyncClient

    async def _do(self, call: _Call[T]) -> T:
        attempts = _Attempts(call, self._patience)
        while (pause := attempts.judge(await self._try(call))) is not None:
            await asyncio.sleep(pause)
        return call.parse(attempts.answer)

    async def _try(self, call: _Call[Any]) -> httpx.Response | httpx.TransportError:
        try:
            return await self._http.request(call.method, call.path, json=call.body, headers=call.headers)
        except httpx.TransportError as error:
            return error

    async def create(
        self, name: str, arms: Sequence[Arm] | int, policy: str = "Evidence", **terms: Any
    ) -> JSON:
        """Make a player; nothing happens if there is the same one. ``terms``: horizon, rewards, expire, unrewarded, edges."""
        return await self._do(_create(name, arms, policy, terms))

    async def players(self) -> list[str]:
        """Their names."""
        return await self._do(_players())

    async def decide(self, player: str, unit: str | None = None) -> Choice:
        """What to try next; a unit gets the same choice until that is rewarded or expires."""
        return await self._do(_decide(player, unit))

    async def decide_many(
        self, player: str, count: int | None = None, *, units: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """``count`` choices of different arms, or one for each of ``units``."""
        return await self._do(_decide_many(player, count, units))

    async def reward(
        self,
        player: str,
        decision: str,
        reward: float,
        also: Rewards | None = None,
        key: str | None = None,
    ) -> bool:
        """The reward of a decision; False if it had one already, has expired or is forgotten."""
        return await self._do(_reward(player, decision, reward, also, key))

    async def correct(self, player: str, decision: str, reward: float, key: str | None = None) -> bool:
        """What a decision really paid, or its conversion under a ``key``; False if that is known, or its time is over."""
        return await self._do(_reward(player, decision, reward, None, key, True))

    async def reward_many(self, player: str, rewards: Iterable[tuple[str, float]]) -> list[bool]:
        """Rewards of several decisions: all are learned, or none if one is wrong."""
        return await self._do(_reward_many(player, rewards))

    async def observe(self, player: str, arm: Arm, reward: float, also: Rewards | None = None) -> bool:
        """What an arm paid that was tried without a decision of the player."""
        return await self._do(_observe(player, arm, reward, also))

    async def add_arm(self, player: str, name: Arm | None = None) -> Arm:
        """An arm never seen; sent once."""
        return await self._do(_add_arm(player, name))

    async def rename_arm(self, player: str, arm: Arm, name: Arm) -> None:
        """Another name for an arm; sent once."""
        await self._do(_rename_arm(player, arm, name))

    async def remove_arm(self, player: str, arm: Arm) -> None:
        """Remove an arm for ever; sent once."""
        await self._do(_remove_arm(player, arm))

    async def summary(self, player: str, limit: int = 100) -> JSON:
        """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
        return await self._do(_summary(player, limit))

    async def probabilities(self, player: str) -> dict[Arm, float]:
        """The probability of each arm at the next decision."""
        return await self._do(_probabilities(player))

    async def winner(self, player: str, risk: float = 0.05, at_least: float | None = None) -> JSON:
        """The best arm with a stated risk, or how long it takes to know; one may ask as often as one likes."""
        return await self._do(_winner(player, risk, at_least))

    async def evaluate(self, player: str, policies: Sequence[str], learn: float = 0.5) -> JSON:
        """What other policies would have earned, from the log of this player."""
        return await self._do(_evaluate(player, policies, learn))

    async def log(self, player: str, format: str = "csv", last: int | None = None) -> bytes:
        """Every decision with its probability and reward, as the content of a csv, parquet or dsjson file."""
        return await self._do(_log(player, format, last))

    async def export(self, player: str) -> Export:
        """The player with all it knows, as the content of a file."""
        return await self._do(_export(player))

    async def archive(self, player: str, tag: str) -> None:
        """Let a player rest until `restore`; ``tag`` is that of an export after its last event."""
        await self._do(_archive(player, tag))

    async def restore(self, player: str) -> None:
        """Bring back a player that was archived."""
        await self._do(_restore(player))

    async def delete(self, player: str, tag: str) -> None:
        """Delete a player and its journal for ever; ``tag`` is that of an export after its last event. Sent once."""
        await self._do(_delete(player, tag))

    async def aliases(self) -> dict[str, dict[str, int]]:
        """Where each alias sends units: per cent by player."""
        return await self._do(_aliases())

    async def alias(self, name: str, split: Mapping[str, int]) -> None:
        """Let a name stand for players, each for so many per cent of the units."""
        await self._do(_alias(name, split))

    async def rollback(self, name: str) -> dict[str, int]:
        """Bring back the split that an alias had before its last change, and return it."""
        return await self._do(_rollback(name))

    async def remove_alias(self, name: str) -> None:
        """Let a name stand for nothing any more; sent once."""
        await self._do(_remove_alias(name))

    async def changes(self, last: int = 100, before: int | None = None) -> list[JSON]:
        """Who changed what, the latest first; ``before`` a number ``seq``, to go on."""
        return await self._do(_changes(last, before))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

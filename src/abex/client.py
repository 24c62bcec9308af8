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
import inspect
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload
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
P = ParamSpec("P")
T = TypeVar("T", covariant=True)


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


def _nothing(answer: httpx.Response) -> None:
    """Nothing is said beyond that it is done."""


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


class _Method(Protocol[P, T]):
    """A method of both clients, as types have it."""

    @overload
    def __get__(self, client: Client, cls: type[Client]) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, cls: type[AsyncClient]) -> Callable[P, Awaitable[T]]: ...


def _method(call: Callable[Concatenate[Any, P], _Call[T]]) -> _Method[P, T]:
    """The method of both clients that makes a call: `Client` returns the answer, `AsyncClient` what gives it when awaited."""

    @wraps(call)
    def method(client: Any, *given: P.args, **named: P.kwargs) -> Any:
        return client._do(call(client, *given, **named))

    shown = inspect.signature(call)
    answer = str(shown.return_annotation).removeprefix("_Call[").removesuffix("]")
    method.__signature__ = shown.replace(return_annotation=answer)  # type: ignore[attr-defined]
    return method  # type: ignore[return-value]


class _Service:
    """What a service can be asked, and the connections to it."""

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

    @_method
    def create(
        self, /, name: str, arms: Sequence[Arm] | int, policy: str = "Evidence", **terms: Any
    ) -> _Call[JSON]:
        """Make a player; nothing happens if there is the same one. ``terms``: horizon, rewards, expire, unrewarded, edges."""
        wanted = arms if isinstance(arms, int) else list(arms)
        return _Call("POST", "/v1/players", {"name": name, "policy": policy, "arms": wanted, **terms}, _json)

    @_method
    def players(self) -> _Call[list[str]]:
        """Their names."""
        return _Call(
            "GET", "/v1/players", None, lambda answer: [one["name"] for one in _json(answer)["players"]]
        )

    @_method
    def decide(self, player: str, unit: str | None = None) -> _Call[Choice]:
        """What to try next; a unit gets the same choice until that is rewarded or expires."""
        body = _given(key=_key(), unit=unit)
        return _Call("POST", _of(player, "/decisions"), body, lambda answer: Choice(**_json(answer)))

    @_method
    def decide_many(
        self, player: str, count: int | None = None, *, units: Sequence[str | None] | None = None
    ) -> _Call[list[Choice]]:
        """``count`` choices of different arms, or one for each of ``units``."""
        body = _given(key=_key(), **({"count": count} if units is None else {"units": list(units)}))

        def parse(answer: httpx.Response) -> list[Choice]:
            return [Choice(**one) for one in _json(answer)["decisions"]]

        return _Call("POST", _of(player, "/decisions/batch"), body, parse)

    @_method
    def reward(
        self,
        player: str,
        decision: str,
        reward: float,
        also: Rewards | None = None,
        key: str | None = None,
    ) -> _Call[bool]:
        """The reward of a decision; False if it had one already, has expired or is forgotten.

        Also False if an attempt of this call, whose answer was lost, has reported it: it counts once. Where a decision may have
        several conversions, each has a ``key``, such as an order's number.
        """
        body = _given(decision=decision, reward=reward, also=_named(also), key=key)
        return _Call("POST", _of(player, "/rewards"), body, _learned)

    @_method
    def correct(self, player: str, decision: str, reward: float, key: str | None = None) -> _Call[bool]:
        """What a decision really paid, or its conversion under a ``key``; False if that is known, or its time is over."""
        body = _given(decision=decision, reward=reward, key=key, corrects=True)
        return _Call("POST", _of(player, "/rewards"), body, _learned)

    @_method
    def reward_many(self, player: str, rewards: Iterable[tuple[str, float]]) -> _Call[list[bool]]:
        """Rewards of several decisions: all are learned, or none if one is wrong."""
        body = {"rewards": [{"decision": decision, "reward": reward} for decision, reward in rewards]}
        return _Call("POST", _of(player, "/rewards/batch"), body, _learned)

    @_method
    def observe(self, player: str, arm: Arm, reward: float, also: Rewards | None = None) -> _Call[bool]:
        """What an arm paid that was tried without a decision of the player."""
        body = _given(arm=arm, reward=reward, also=_named(also), key=_key())
        return _Call("POST", _of(player, "/observations"), body, _learned)

    @_method
    def add_arm(self, player: str, name: Arm | None = None) -> _Call[Arm]:
        """An arm never seen; sent once."""
        return _Call("POST", _of(player, "/arms"), {"name": name}, lambda answer: _json(answer)["arm"], False)

    @_method
    def rename_arm(self, player: str, arm: Arm, name: Arm) -> _Call[None]:
        """Another name for an arm; sent once."""
        return _Call("PATCH", _arm(player, arm), {"name": name}, _nothing, False)

    @_method
    def remove_arm(self, player: str, arm: Arm) -> _Call[None]:
        """Remove an arm for ever; sent once."""
        return _Call("DELETE", _arm(player, arm), None, _nothing, False)

    @_method
    def summary(self, player: str, limit: int = 100) -> _Call[JSON]:
        """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
        return _Call("GET", _of(player, f"/summary?limit={limit}"), None, _json)

    @_method
    def probabilities(self, player: str) -> _Call[dict[Arm, float]]:
        """The probability of each arm at the next decision."""

        def parse(answer: httpx.Response) -> dict[Arm, float]:
            return {one["arm"]: one["probability"] for one in _json(answer)["probabilities"]}

        return _Call("GET", _of(player, "/probabilities"), None, parse)

    @_method
    def winner(self, player: str, risk: float = 0.05, at_least: float | None = None) -> _Call[JSON]:
        """The best arm with a stated risk, or how long it takes to know; one may ask as often as one likes."""
        query = httpx.QueryParams(_given(risk=risk, at_least=at_least))
        return _Call("GET", _of(player, f"/winner?{query}"), None, _json)

    @_method
    def evaluate(self, player: str, policies: Sequence[str], learn: float = 0.5) -> _Call[JSON]:
        """What other policies would have earned, from the log of this player."""
        return _Call("POST", _of(player, "/evaluate"), {"policies": list(policies), "learn": learn}, _json)

    @_method
    def log(self, player: str, format: str = "csv", last: int | None = None) -> _Call[bytes]:
        """Every decision with its probability and reward, as the content of a csv, parquet or dsjson file."""
        query = httpx.QueryParams(_given(format=format, last=last))
        return _Call("GET", _of(player, f"/log?{query}"), None, lambda answer: answer.content)

    @_method
    def export(self, player: str) -> _Call[Export]:
        """The player with all it knows, as the content of a file."""
        path = _of(player, "/export")
        return _Call("GET", path, None, lambda answer: Export(answer.content, answer.headers["etag"]))

    @_method
    def archive(self, player: str, tag: str) -> _Call[None]:
        """Let a player rest until `restore`; ``tag`` is that of an export after its last event."""
        return _Call("POST", _of(player, "/archive"), None, _nothing, True, {"if-match": tag})

    @_method
    def restore(self, player: str) -> _Call[None]:
        """Bring back a player that was archived."""
        return _Call("POST", _of(player, "/restore"), None, _nothing)

    @_method
    def delete(self, player: str, tag: str) -> _Call[None]:
        """Delete a player and its journal for ever; ``tag`` is that of an export after its last event. Sent once."""
        return _Call("DELETE", _of(player, ""), None, _nothing, False, {"if-match": tag})

    @_method
    def aliases(self) -> _Call[dict[str, dict[str, int]]]:
        """Where each alias sends units: per cent by player."""
        return _Call("GET", "/v1/players?limit=1", None, lambda answer: _json(answer)["aliases"])

    @_method
    def alias(self, name: str, split: Mapping[str, int]) -> _Call[None]:
        """Let a name stand for players, each for so many per cent of the units."""
        return _Call("PUT", _alias_path(name), {"split": dict(split)}, _nothing)

    @_method
    def rollback(self, name: str) -> _Call[dict[str, int]]:
        """Bring back the split that an alias had before its last change, and return it."""
        path = f"{_alias_path(name)}/rollback"
        return _Call("POST", path, {"key": _key()}, lambda answer: _json(answer)["split"])

    @_method
    def remove_alias(self, name: str) -> _Call[None]:
        """Let a name stand for nothing any more; sent once."""
        return _Call("DELETE", _alias_path(name), None, _nothing, False)

    @_method
    def changes(self, last: int = 100, before: int | None = None) -> _Call[list[JSON]]:
        """Who changed what, the latest first; ``before`` a number ``seq``, to go on."""
        query = httpx.QueryParams(_given(limit=last, before=before))
        return _Call("GET", f"/v1/changes?{query}", None, lambda answer: _json(answer)["changes"])


class Client(_Service, AbstractContextManager["Client"]):
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

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(_Service):
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

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

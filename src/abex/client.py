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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from abex.support.errors import UserError
from abex.support.extras import needed

with needed():
    import httpx

PATIENCE = 30.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LATER = frozenset({429, 502, 503, 504})
Arm = str | int


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


@dataclass(frozen=True)
class _Call:
    """A request, and whether it may be repeated."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] | None = None
    repeatable: bool = True


def _player(name: str, rest: str) -> str:
    return f"/v1/players/{quote(name, safe='')}/{rest}"


def _decide(player: str, unit: str | None) -> _Call:
    body = {"key": str(uuid.uuid4())} | ({} if unit is None else {"unit": unit})
    return _Call("POST", _player(player, "decisions"), body)


def _decide_many(player: str, count: int | None, units: Sequence[str | None] | None) -> _Call:
    wanted: dict[str, Any] = {"count": count} if units is None else {"units": list(units)}
    return _Call("POST", _player(player, "decisions/batch"), {"key": str(uuid.uuid4())} | wanted)


def _told(decision: str, reward: float, also: Mapping[Any, float] | None) -> dict[str, Any]:
    side = {} if also is None else {"also": {str(arm): paid for arm, paid in also.items()}}
    return {"decision": decision, "reward": reward} | side


def _observe(player: str, arm: Arm, reward: float, also: Mapping[Any, float] | None) -> _Call:
    side = {} if also is None else {"also": {str(other): paid for other, paid in also.items()}}
    body = {"arm": arm, "reward": reward, "key": str(uuid.uuid4())} | side
    return _Call("POST", _player(player, "observations"), body)


def _choice(found: Any) -> Choice:
    return Choice(found["id"], found["arm"], found["probability"])


class _Attempts:
    """Counts the attempts of one call; says how long to wait, or raises."""

    answer: httpx.Response  # when it is done

    def __init__(self, call: _Call, patience: float) -> None:
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

    def _do(self, call: _Call) -> httpx.Response:
        attempts = _Attempts(call, self._patience)
        while (pause := attempts.judge(self._try(call))) is not None:
            time.sleep(pause)
        return attempts.answer

    def _try(self, call: _Call) -> httpx.Response | httpx.TransportError:
        try:
            return self._http.request(call.method, call.path, json=call.body, params=call.query)
        except httpx.TransportError as error:
            return error

    def create(
        self, name: str, arms: Sequence[Arm] | int, policy: str = "Evidence", **terms: Any
    ) -> dict[str, Any]:
        """Make a player; nothing happens if there is the same one. ``terms``: horizon, rewards, expire, unrewarded, edges."""
        found: dict[str, Any] = self._do(_create(name, arms, policy, terms)).json()
        return found

    def players(self) -> list[str]:
        """Their names."""
        return [one["name"] for one in self._do(_Call("GET", "/v1/players")).json()["players"]]

    def decide(self, player: str, unit: str | None = None) -> Choice:
        """What to try next; a unit gets the same choice until that is rewarded or expires."""
        return _choice(self._do(_decide(player, unit)).json())

    def decide_many(
        self, player: str, count: int | None = None, *, units: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """``count`` choices of different arms, or one for each of ``units``."""
        return [_choice(one) for one in self._do(_decide_many(player, count, units)).json()["decisions"]]

    def reward(
        self, player: str, decision: str, reward: float, also: Mapping[Any, float] | None = None
    ) -> bool:
        """The reward of a decision; False if it had one already, has expired or is forgotten.

        Also False if an attempt of this call, whose answer was lost, has reported it: it counts once.
        """
        call = _Call("POST", _player(player, "rewards"), _told(decision, reward, also))
        return bool(self._do(call).json()["learned"])

    def reward_many(self, player: str, rewards: Iterable[tuple[str, float]]) -> list[bool]:
        """Rewards of several decisions: all are learned, or none if one is wrong."""
        told = [_told(decision, reward, None) for decision, reward in rewards]
        return list(
            self._do(_Call("POST", _player(player, "rewards/batch"), {"rewards": told})).json()["learned"]
        )

    def observe(self, player: str, arm: Arm, reward: float, also: Mapping[Any, float] | None = None) -> bool:
        """What an arm paid that was tried without a decision of the player."""
        return bool(self._do(_observe(player, arm, reward, also)).json()["learned"])

    def add_arm(self, player: str, name: Arm | None = None) -> Arm:
        """An arm never seen; sent once."""
        arm: Arm = self._do(_Call("POST", _player(player, "arms"), {"name": name}, repeatable=False)).json()[
            "arm"
        ]
        return arm

    def rename_arm(self, player: str, arm: Arm, name: Arm) -> None:
        """Another name for an arm; sent once."""
        self._do(_Call("PATCH", _arm(player, arm), {"name": name}, repeatable=False))

    def remove_arm(self, player: str, arm: Arm) -> None:
        """Remove an arm for ever; sent once."""
        self._do(_Call("DELETE", _arm(player, arm), repeatable=False))

    def summary(self, player: str, limit: int = 100) -> dict[str, Any]:
        """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
        found: dict[str, Any] = self._do(
            _Call("GET", _player(player, "summary"), query={"limit": limit})
        ).json()
        return found

    def probabilities(self, player: str) -> dict[Arm, float]:
        """The probability of each arm at the next decision."""
        found = self._do(_Call("GET", _player(player, "probabilities"))).json()["probabilities"]
        return {one["arm"]: one["probability"] for one in found}

    def evaluate(self, player: str, policies: Sequence[str], learn: float = 0.5) -> dict[str, Any]:
        """What other policies would have earned, from the log of this player."""
        body = {"policies": list(policies), "learn": learn}
        found: dict[str, Any] = self._do(_Call("POST", _player(player, "evaluate"), body)).json()
        return found

    def log(self, player: str, format: str = "csv", last: int | None = None) -> bytes:
        """Every decision with its probability and reward, as the content of a csv, parquet or dsjson file."""
        query = {"format": format} | ({} if last is None else {"last": last})
        return self._do(_Call("GET", _player(player, "log"), query=query)).content

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def _create(name: str, arms: Sequence[Arm] | int, policy: str, terms: Mapping[str, Any]) -> _Call:
    wanted = arms if isinstance(arms, int) else list(arms)
    return _Call("POST", "/v1/players", {"name": name, "policy": policy, "arms": wanted} | dict(terms))


def _arm(player: str, arm: Arm) -> str:
    return _player(player, f"arms/{quote(str(arm), safe='')}")


class AsyncClient(_Connected):
    """A service, from asyncio: what a web application uses while it answers; see `Client` for the parameters."""

    _http_client = httpx.AsyncClient
    _http: httpx.AsyncClient

    async def _do(self, call: _Call) -> httpx.Response:
        attempts = _Attempts(call, self._patience)
        while (pause := attempts.judge(await self._try(call))) is not None:
            await asyncio.sleep(pause)
        return attempts.answer

    async def _try(self, call: _Call) -> httpx.Response | httpx.TransportError:
        try:
            return await self._http.request(call.method, call.path, json=call.body, params=call.query)
        except httpx.TransportError as error:
            return error

    async def create(
        self, name: str, arms: Sequence[Arm] | int, policy: str = "Evidence", **terms: Any
    ) -> dict[str, Any]:
        """Make a player; nothing happens if there is the same one."""
        found: dict[str, Any] = (await self._do(_create(name, arms, policy, terms))).json()
        return found

    async def decide(self, player: str, unit: str | None = None) -> Choice:
        """What to try next; a unit gets the same choice until that is rewarded or expires."""
        return _choice((await self._do(_decide(player, unit))).json())

    async def decide_many(
        self, player: str, count: int | None = None, *, units: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """``count`` choices of different arms, or one for each of ``units``."""
        found = (await self._do(_decide_many(player, count, units))).json()["decisions"]
        return [_choice(one) for one in found]

    async def reward(
        self, player: str, decision: str, reward: float, also: Mapping[Any, float] | None = None
    ) -> bool:
        """The reward of a decision; False if it had one already, has expired or is forgotten."""
        call = _Call("POST", _player(player, "rewards"), _told(decision, reward, also))
        return bool((await self._do(call)).json()["learned"])

    async def reward_many(self, player: str, rewards: Iterable[tuple[str, float]]) -> list[bool]:
        """Rewards of several decisions: all are learned, or none if one is wrong."""
        told = [_told(decision, reward, None) for decision, reward in rewards]
        call = _Call("POST", _player(player, "rewards/batch"), {"rewards": told})
        return list((await self._do(call)).json()["learned"])

    async def observe(
        self, player: str, arm: Arm, reward: float, also: Mapping[Any, float] | None = None
    ) -> bool:
        """What an arm paid that was tried without a decision of the player."""
        return bool((await self._do(_observe(player, arm, reward, also))).json()["learned"])

    async def summary(self, player: str, limit: int = 100) -> dict[str, Any]:
        """Counts, and of the arms chosen most: pulls, mean with interval, probability now."""
        call = _Call("GET", _player(player, "summary"), query={"limit": limit})
        found: dict[str, Any] = (await self._do(call)).json()
        return found

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

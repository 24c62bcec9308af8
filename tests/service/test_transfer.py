"""A player that learns from the log of the one it replaces."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("starlette")
from tests.service.serving import service
from tests.waiting import wait_until

MEANS = {"red": 0.2, "green": 0.8, "old": 0.5}


@pytest.fixture
def client(tmp_path):
    with service(f"sqlite:///{tmp_path}/shop.db") as opened:
        make(opened, "banner", list(MEANS))
        yield opened


def make(client, name, arms, **more):
    answer = client.post("/v1/players", json={"name": name, "policy": "Thompson", "arms": arms} | more)
    assert answer.status_code == 201, answer.text


def play(client, name, count, seed, late=0):
    """Decisions with rewards; returns the last ones, whose rewards are still to come."""
    rng = random.Random(seed)
    asked = []
    for _ in range(count):
        made = client.post(f"/v1/players/{name}/decisions", json={}).json()
        asked.append({"decision": made["id"], "reward": float(rng.random() < MEANS[made["arm"]])})
    told = {"rewards": asked[: count - late]}
    assert client.post(f"/v1/players/{name}/rewards/batch", json=told).status_code == 200
    return asked[count - late :]


def learn(client, heir, former, status=200, **more):
    answer = client.post(f"/v1/players/{heir}/learn", json={"player": former} | more)
    assert answer.status_code == status, answer.text
    return answer.json()


def arms_of(client, name):
    return {one["arm"]: one for one in client.get(f"/v1/players/{name}/summary").json()["arms"]}


def test_an_heir_knows_what_its_predecessor_observed_and_each_reward_once(client):
    waiting = play(client, "banner", 120, seed=1, late=10)
    make(client, "banner-2", ["green", "red", "new"])
    former = arms_of(client, "banner")
    gone = former["old"]["observations"]
    assert learn(client, "banner-2", "banner") == {
        "decisions": 110, "learned": 110 - gone, "of_other_arms": gone,
    }  # fmt: skip
    for arm in ("red", "green"):
        heir = arms_of(client, "banner-2")[arm]
        assert heir["observations"] == former[arm]["observations"] > 0
        assert heir["mean"] == pytest.approx(former[arm]["mean"])
        assert heir["pulls"] == 0  # it has decided nothing yet
    assert arms_of(client, "banner-2")["new"]["observations"] == 0
    events = client.get("/v1/players/banner-2/summary").json()["seq"]
    assert learn(client, "banner-2", "banner")["learned"] == 0
    assert client.get("/v1/players/banner-2/summary").json()["seq"] == events
    client.post("/v1/players/banner/rewards/batch", json={"rewards": waiting})
    again = arms_of(client, "banner")
    more = sum(again[arm]["observations"] - former[arm]["observations"] for arm in ("red", "green"))
    assert learn(client, "banner-2", "banner")["learned"] == more
    assert arms_of(client, "banner-2")["green"]["mean"] == pytest.approx(again["green"]["mean"])


def test_rewards_of_a_wider_range_and_its_own_log_are_refused(client):
    play(client, "banner", 5, seed=2)
    make(client, "small", ["red"], rewards=[0.0, 0.5], unrewarded=0.0)
    make(client, "wide", list(MEANS), rewards=[-1.0, 3.0])
    assert "Rewards of 'banner' are from 0 to 1" in learn(client, "small", "banner", 409)["error"]
    assert "already" in learn(client, "banner", "banner", 400)["error"]
    assert "There is no player 'nobody'" in learn(client, "wide", "nobody", 404)["error"]
    assert learn(client, "wide", "banner")["learned"] == 5
    former, heir = arms_of(client, "banner"), arms_of(client, "wide")
    for arm, one in former.items():  # the same rewards, whatever the scale
        assert heir[arm]["mean"] == (None if one["mean"] is None else pytest.approx(one["mean"]))


def test_only_the_latest_decisions_where_that_is_asked(client):
    play(client, "banner", 20, seed=3)
    make(client, "short", list(MEANS))
    assert learn(client, "short", "banner", last=7)["learned"] == 7


def test_an_expired_decision_counts_for_the_heir_as_it_did(tmp_path):
    with service(f"sqlite:///{tmp_path}/expiring.db") as client:
        make(client, "banner", ["red"], expire=0.001)
        client.post("/v1/players/banner/decisions", json={})
        wait_until(lambda: client.get("/v1/players/banner/summary").json()["expired"])
        make(client, "heir", ["red"])
        assert learn(client, "heir", "banner")["learned"] == 1
        assert arms_of(client, "heir")["red"]["mean"] == 0.0

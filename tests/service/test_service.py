"""The decision service in one process: what it answers, refuses, and keeps."""

import asyncio
import contextlib
import gc
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from prometheus_client.multiprocess import mark_process_dead
from starlette.applications import Starlette
from starlette.routing import Mount

from abex import Player, UserError
from abex.evaluation import Log, evaluate
from abex.players.events import Decided
from abex.players.journal import journal_at
from abex.players.player_settings import PlayerSettings
from abex.players.requests import RequestQueue
from abex.players.shared_player import Proposal
from abex.players.sqlite_journal import SqliteJournal
from abex.service import Settings, create_app
from abex.service.handlers import summary_of
from abex.service.keys import ROLES, KeyFile, new_key
from abex.service.metrics import FOLDER
from abex.service.routes import ROUTES
from abex.service.timeline import Timeline
from tests.each import each
from tests.players.test_terms import Clock
from tests.service.serving import NEVER_MADE, TestClient, service
from tests.waiting import wait_until

DECIDE, REWARD = "/v1/players/banner/decisions", "/v1/players/banner/rewards"


@pytest.fixture
def shop(store):
    """A service with one player."""
    with service(store) as client:
        banner(client)
        yield client


def banner(client, name="banner", policy="Thompson", arms=("red", "green", "blue"), **terms):
    answer = client.post("/v1/players", json={"name": name, "policy": policy, "arms": arms, **terms})
    assert answer.status_code in (200, 201), answer.text
    return answer


def patiently(client, address, body):
    """As a client does that finds the store busy: nothing counts twice."""
    answers = iter(lambda: client.post(address, json=body), None)
    answer = next(answer for answer in answers if answer.status_code != 503)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask(client, unit=None, **body):
    body |= {} if unit is None else {"unit": unit}
    answer = client.post(DECIDE, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def tell(client, decision, reward=1.0, **body):
    return client.post(REWARD, json={"decision": decision, "reward": reward, **body})


def head(store):
    """The number of the last event."""
    journal = journal_at(store)
    journal.connect(create=False)
    try:
        return journal.player("banner").head
    finally:
        journal.close()


def test_a_decision_is_answered_and_its_reward_counts_once(shop):
    decision = ask(shop)
    assert decision["arm"] in ("red", "green", "blue")
    assert decision["probability"] == pytest.approx(1 / 3)
    assert tell(shop, decision["id"]).json() == {"learned": True}
    assert tell(shop, decision["id"], 0.0).json() == {"learned": False}
    summary = shop.get("/v1/players/banner/summary").json()
    assert (summary["decisions"], summary["rewarded"], summary["waiting"]) == (1, 1, 0)
    chosen = next(one for one in summary["arms"] if one["arm"] == decision["arm"])
    assert (chosen["pulls"], chosen["mean"]) == (1, 1.0)
    chances = shop.get("/v1/players/banner/probabilities").json()["probabilities"]
    assert sum(one["probability"] for one in chances) == pytest.approx(1.0)


def test_a_decision_is_on_disk_when_it_is_answered(shop, store):
    for _ in range(3):
        decision = ask(shop)
        with Player.open(store, "banner") as other:
            assert decision["id"] in [one.id for one in other.pending()]


def test_making_a_player_again_is_the_same_or_a_conflict(shop):
    assert banner(shop).json()["created"] is False
    answer = shop.post(
        "/v1/players", json={"name": "banner", "policy": "UCB1", "arms": ["red", "green", "blue"]}
    )
    assert answer.status_code == 409
    assert "policy is" in answer.json()["error"]
    banner(shop, "other", "UCB1", 4)
    listed = shop.get("/v1/players").json()["players"]
    assert [one["name"] for one in listed] == ["banner", "other"]
    first = shop.get("/v1/players?limit=1").json()
    assert (first["n_players"], first["shown"], [one["name"] for one in first["players"]]) == (
        2,
        1,
        ["banner"],
    )


def test_a_deploy_adds_the_arms_that_are_new_and_a_conflict_names_them(shop):
    more = {"name": "banner", "policy": "Thompson", "arms": ["red", "green", "blue", "black"]}
    assert shop.post("/v1/players/banner/arms", json={"name": "white"}).status_code < 300
    answer = shop.post("/v1/players", json=more)
    assert answer.status_code == 409
    assert 'not \'black\': "on_new_arms": "add" adds what is new' in answer.json()["error"]
    fewer = shop.post("/v1/players", json=more | {"arms": ["red", "green"]})
    assert '"on_missing_arms": "keep" leaves it, "retire" removes it' in fewer.json()["error"]
    deployed = shop.post("/v1/players", json=more | {"on_new_arms": "add", "on_missing_arms": "keep"})
    assert deployed.status_code == 200, deployed.text
    assert shop.get("/v1/players/banner/arms").json()["arms"] == ["red", "green", "blue", "white", "black"]


@pytest.mark.parametrize("arms", [["red", "green", "blue", "white"], 4])
def test_workers_that_deploy_at_once_add_an_arm_once(store, elsewhere, arms):
    with service(store) as one, service(elsewhere) as two, ThreadPoolExecutor(6) as pool:
        banner(one, arms=arms[:3] if isinstance(arms, list) else 3)
        body = {"name": "banner", "policy": "Thompson", "arms": arms, "on_new_arms": "add"}
        list(pool.map(patiently, [one, two] * 3, ["/v1/players"] * 6, [body] * 6))
        for client in (one, two):
            found = client.get("/v1/players/banner/arms").json()["arms"]
            assert found == (arms if isinstance(arms, list) else [0, 1, 2, 3])


def test_a_unit_keeps_its_decision_until_it_is_rewarded_in_any_worker(store, elsewhere):
    with service(store) as one, service(elsewhere) as two:
        banner(one)
        first = ask(one, unit="ann")
        assert [ask(worker, unit="ann")["id"] for worker in (one, two, two)] == [first["id"]] * 3
        assert ask(two, unit="bob")["id"] != first["id"]
        assert tell(two, first["id"]).json()["learned"]
        assert ask(one, unit="ann")["id"] != first["id"]


def test_workers_that_decide_for_a_unit_at_once_agree(store, elsewhere):
    """Each worker draws before it knows of the other; the journal's order tells which decision stands."""
    with service(store) as one, service(elsewhere) as two, ThreadPoolExecutor(8) as pool:
        banner(one)
        ask(two)
        for turn in range(15):
            unit = f"u{turn}"
            answers = list(pool.map(patiently, [one, two] * 4, [DECIDE] * 8, [{"unit": unit}] * 8))
            assert len({answer["id"] for answer in answers}) == 1
            assert len({(answer["arm"], answer["probability"]) for answer in answers}) == 1
        summary = two.get("/v1/players/banner/summary").json()
        assert (summary["decisions"], summary["waiting"]) == (16, 16)
        assert len(pd.read_csv(io.BytesIO(one.get("/v1/players/banner/log").content))) == 16


def test_a_unit_gets_another_decision_when_its_own_expires(store):
    with service(store) as client:
        banner(client, expire=0.3)
        first = ask(client, unit="ann")
        wait_until(lambda: ask(client, unit="ann")["id"] != first["id"])
        assert tell(client, first["id"]).json() == {"learned": False}


def test_a_request_that_comes_again_under_its_key_gets_the_same_decisions(store, elsewhere):
    with service(store) as one, service(elsewhere) as two:
        banner(one)
        first = ask(one, key="k")
        assert ask(two, key="k") == first
        batch = {"units": ["a", "b", None], "key": "many"}
        answers = [client.post(f"{DECIDE}/batch", json=batch).json() for client in (one, two)]
        assert answers[0] == answers[1]
        distinct = [
            client.post(f"{DECIDE}/batch", json={"count": 3, "key": "all"}).json() for client in (two, one)
        ]
        assert distinct[0] == distinct[1]
        assert {choice["arm"] for choice in distinct[0]["decisions"]} == {"red", "green", "blue"}
        assert [choice["probability"] for choice in distinct[0]["decisions"]] == [1.0] * 3
        assert one.get("/v1/players/banner/summary").json()["decisions"] == 7


def test_units_and_keys_survive_a_snapshot(store):
    with service(store) as client:
        banner(client)
        first = ask(client, unit="ann", key="k")
        client.post("/v1/players/banner/observations", json={"arm": "red", "reward": 1, "key": "seen"})
    with Player.open(store, "banner") as player:
        before = player.text()
        player.compact()
    with Player.open(store, "banner") as player:
        assert player.text() == before
    with service(store) as client:
        assert ask(client, unit="ann")["id"] == ask(client, key="k")["id"] == first["id"]
        again = client.post(
            "/v1/players/banner/observations", json={"arm": "red", "reward": 1, "key": "seen"}
        )
        assert again.json() == {"learned": False}


def test_an_observation_counts_once_and_takes_no_decision_its_reward(shop):
    decision = ask(shop)
    body = {"arm": decision["arm"], "reward": 0.5, "also": {}, "key": "o"}
    answers = [shop.post("/v1/players/banner/observations", json=body).json()["learned"] for _ in range(2)]
    assert answers == [True, False]
    assert shop.get("/v1/players/banner/summary").json()["waiting"] == 1
    assert tell(shop, decision["id"]).json()["learned"]


def test_side_observations_on_a_graph(store):
    with service(store) as client:
        banner(client, policy="UCB1", arms=3, edges=[[0, 1], [1, 2]])
        decision = ask(client)
        others = {str(arm): 1.0 for arm in range(3) if arm != decision["arm"]}
        assert tell(client, decision["id"], 0.0, also=others).json()["learned"]
        summary = client.get("/v1/players/banner/summary").json()
        assert [arm["observations"] for arm in summary["arms"]] == [1, 1, 1]
        twice = tell(client, ask(client)["id"], 0.0, also={str(arm): 1.0 for arm in range(3)})
        assert twice.status_code == 400
        assert "both the arm tried and a side observation" in twice.json()["error"]


def test_a_batch_of_rewards_is_learned_whole_or_not_at_all(shop, store):
    ids = [one["id"] for one in shop.post(f"{DECIDE}/batch", json={"units": [None] * 3}).json()["decisions"]]
    before = head(store)
    wrong = [{"decision": ids[0], "reward": 1}, {"decision": NEVER_MADE, "reward": 1}]
    answer = shop.post(f"{REWARD}/batch", json={"rewards": wrong})
    assert (answer.status_code, head(store)) == (404, before)
    right = [{"decision": name, "reward": place / 3} for place, name in enumerate([*ids, ids[0]])]
    answer = shop.post(f"{REWARD}/batch", json={"rewards": right})
    assert answer.json() == {"learned": [True, True, True, False]}


def test_several_conversions_and_refunds_over_http(store):
    """A sum of conversions, each once under its key; a correction of one, of all, and one that comes too late."""
    with service(store) as client:
        banner(client, rewards=[0, 10], window=600, conversions="sum", corrections=3600)
        one, other = ask(client), ask(client)
        for reward, key, learned in ((4, "order 1", True), (3, "order 2", True), (3, "order 2", False)):
            assert tell(client, one["id"], reward, key=key).json() == {"learned": learned}
        for learned in (True, False):
            assert tell(client, one["id"], 1, key="order 1", corrects=True).json() == {"learned": learned}
        assert tell(client, other["id"], 8).json() == {"learned": True}
        batch = {"rewards": [{"decision": other["id"], "reward": 0, "corrects": True}] * 2}
        assert client.post(f"{REWARD}/batch", json=batch).json() == {"learned": [True, False]}
        summary = client.get("/v1/players/banner/summary").json()
        assert (summary["rewarded"], summary["corrected"], summary["late"]) == (2, 2, 0)
        assert (summary["window"], summary["expire"], summary["conversions"]) == (600.0, None, "sum")
        rows = {row["arm"]: row for row in summary["arms"]}
        assert sum(row["conversions"] for row in rows.values()) == 3
        assert sum(row["mature"] + row["pending"] for row in rows.values()) == 2
        log = client.get("/v1/players/banner/log").text
        assert '"{""order 1"": 1.0, ""order 2"": 3.0}"' in log
        timeline = client.get("/v1/players/banner/timeline").json()
        assert timeline["reward"] == 4.0
        text = client.get("/metrics").text
        for line in (
            'abex_corrections_total{player="banner"} 2.0',
            'abex_instance_corrections_total{player="banner"} 2.0',
        ):
            assert line in text
        paid = [float(value) for value in re.findall(r"^abex_arm_reward_sum{.*} (.*)$", text, re.M)]
        assert sum(paid) == pytest.approx(4.0)


@each("corrects", [False, True])
@each("silence", ["window", "expire"])
def test_a_reward_that_comes_too_late_is_answered_so_and_counted_once(silence, corrects, tmp_path):
    url = f"sqlite:///{tmp_path}/{silence}{corrects}.db"
    with service(url) as client:
        banner(client, arms=["red"], corrections=60, **{silence: 60})
        with Player.open(
            f"{url}?synchronous=normal", "banner", clock=lambda: time.time() - 3_600.0
        ) as before:
            old = before.decide()
            before.flush()
        address = "/v1/players/banner/summary"
        wait_until(lambda: client.get(address).json()["expired"] == 1)
        for _ in range(2):
            assert tell(client, old.id, 1.0, corrects=corrects).json() == {"learned": False}
        summary = client.get(address).json()
        assert (summary["late"], summary["rewarded"], summary["corrected"]) == (1, 0, 0)
        assert 'abex_late_total{player="banner"} 1.0' in client.get("/metrics").text


def test_what_cannot_be_corrected_is_one_sentence(shop):
    answer = tell(shop, ask(shop)["id"], 0.0, corrects=True)
    assert answer.status_code == 400
    assert "The rewards of this player are final" in answer.json()["error"]
    answer = shop.post("/v1/players", json={"name": "x", "arms": 2, "expire": 60, "conversions": "sum"})
    assert answer.status_code == 400
    assert "ounts what comes within a window" in answer.json()["error"]


def test_arms_come_go_and_change_their_names(shop):
    assert shop.post("/v1/players/banner/arms", json={"name": "a/b c"}).json() == {"arm": "a/b c"}
    assert shop.patch("/v1/players/banner/arms/a%2Fb%20c", json={"name": "navy"}).status_code == 200
    assert shop.get("/v1/players/banner/arms").json()["arms"] == ["red", "green", "blue", "navy"]
    assert shop.delete("/v1/players/banner/arms/navy").status_code == 200
    assert shop.delete("/v1/players/banner/arms/navy").status_code == 400
    banner(shop, "numbers", "UCB1", 2)
    assert shop.post("/v1/players/numbers/arms").json() == {"arm": 2}
    assert shop.delete("/v1/players/numbers/arms/0").json() == {"removed": 0}
    assert shop.get("/v1/players/numbers/arms").json()["arms"] == [1, 2]


def test_requests_that_wait_share_a_commit(store, monkeypatch):
    """Twenty come at once: some are in the first commit, and all that came while it was under way in the second."""
    commits, asked = [], []
    append, submit = SqliteJournal.append, RequestQueue.submit

    def slow(self, batch):
        commits.append(len(asked))
        wait_until(lambda: len(asked) % 20 == 0)
        return append(self, batch)

    def counted(self, work):
        future = submit(self, work)
        asked.append(work)
        return future

    with service(store) as client, ThreadPoolExecutor(20) as pool:
        banner(client)
        monkeypatch.setattr(SqliteJournal, "append", slow)
        monkeypatch.setattr(RequestQueue, "submit", counted)
        decisions = list(pool.map(lambda _: ask(client), range(20)))
        assert len(commits) <= 2
        learned = list(pool.map(lambda one: tell(client, one["id"]).json()["learned"], decisions))
        assert len(commits) <= 4
    assert len({one["id"] for one in decisions}) == 20
    assert all(learned)


def test_a_batch_waits_a_moment_for_as_many_as_shared_the_last_commit():
    batches = []

    async def many():
        queue = RequestQueue(None)

        async def carried_out(batch):
            batches.append(len(batch))
            if len(batches) == 1:
                queue.submit("four")
            await asyncio.sleep(0.01)
            for one in batch:
                one.future.set_result(one.request)

        queue._carry_out = carried_out
        first = [queue.submit(name) for name in ("one", "two", "three")]
        for one in first[:2]:  # who is answered asks again
            one.add_done_callback(lambda done: queue.submit(f"after {done.result()}"))
        await asyncio.gather(*first)
        await queue.close()

    asyncio.run(many())
    assert batches == [3, 3]


def test_an_application_mounted_elsewhere_answers_and_changes_nothing_of_its_process(shop, store):
    ask(shop)
    before = sys.getswitchinterval(), gc.get_freeze_count(), gc.isenabled(), signal.getsignal(signal.SIGTERM)
    ours = create_app(Settings(store))

    @contextlib.asynccontextmanager
    async def lifespan(app):
        yield
        await ours.close()

    outer = Starlette(routes=[Mount("/bandit", ours)], lifespan=lifespan)
    with TestClient(outer, base_url="http://localhost") as client:
        assert client.post(f"/bandit{DECIDE}").json()["arm"]
        assert client.get("/bandit/health").json() == {"status": "ok"}
        assert client.get("/bandit/openapi.json").json()["openapi"] == "3.1.0"
        assert before == (
            sys.getswitchinterval(), gc.get_freeze_count(), gc.isenabled(), signal.getsignal(signal.SIGTERM),
        )  # fmt: skip


def test_methods_are_told_and_head_is_like_get(shop):
    refused = shop.put(DECIDE)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert shop.head("/v1/players").status_code == 200


def test_who_looks_again_gets_a_summary_only_where_something_has_happened(shop):
    first = shop.get("/v1/players/banner/summary")
    tag = {"if-none-match": first.headers["etag"]}
    again = shop.get("/v1/players/banner/summary", headers=tag)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    described = shop.get("/openapi.json").json()["paths"]
    assert {
        path for path, methods in described.items() if "304" in methods.get("get", {}).get("responses", {})
    } == {"/v1/players/{name}/summary"}
    ask(shop)
    assert shop.get("/v1/players/banner/summary", headers=tag).json()["decisions"] == 1


def test_the_winner_is_told_with_its_risk_and_bad_numbers_are_one_sentence(shop):
    for _ in range(60):
        made = ask(shop)
        arm = made["arm"]
        shop.post("/v1/players/banner/rewards", json={"decision": made["id"], "reward": float(arm == "red")})
    found = shop.get("/v1/players/banner/winner?risk=0.2").json()
    assert found["risk"] == 0.2
    assert found["leader"] == "red"
    assert isinstance(found["sentence"], str)
    for query, said in (
        ("risk=x", "Risk must be a number, got 'x'"),
        ("risk=1", "Risk must be"),
        ("at_least=0", "t_least must be"),
    ):
        answer = shop.get(f"/v1/players/banner/winner?{query}")
        assert answer.status_code == 400
        assert said in answer.json()["error"]


def test_a_player_is_deleted_after_its_last_state_was_exported(store, tmp_path):
    with service(store) as one, service(store) as two:
        banner(one)
        tell(one, ask(one)["id"])
        ask(two)
        path = "/v1/players/banner"
        assert one.delete(path).status_code == 428
        export = one.get(f"{path}/export")
        (tmp_path / "banner.json").write_bytes(export.content)
        ask(one)  # something has happened since
        assert one.delete(path, headers={"if-match": export.headers["etag"]}).status_code == 412
        again = one.get(f"{path}/export")
        (tmp_path / "banner.json").write_bytes(again.content)
        tag = {"if-match": again.headers["etag"]}
        assert one.delete(path, headers=tag).json() == {"deleted": "banner"}
        assert one.get("/v1/players").json()["players"] == []
        assert one.post(DECIDE).status_code == 404
        assert two.post(DECIDE).status_code in (404, 503)  # it learns of it now
        assert two.post(DECIDE).status_code == 404
        assert one.delete(path, headers=tag).status_code == 404
        loaded = Player.load(tmp_path / "banner.json")
        assert len(loaded.pending()) == 2
        banner(two, policy="UCB1", arms=["a", "b"])  # another one of that name
        assert ask(one)["arm"] in ("a", "b")
        assert ask(two)["arm"] in ("a", "b")
        assert two.get(f"{path}/summary").json()["decisions"] == 2


def test_an_archived_player_rests_until_it_is_brought_back(store, elsewhere):
    path = "/v1/players/banner"
    sentence = "The player 'banner' is archived and neither decides nor learns until it is brought back"
    with service(store) as one, service(elsewhere) as two:
        banner(one)
        banner(one, "other")
        waiting = ask(two)["id"]
        assert one.post(f"{path}/archive").status_code == 428
        tag = {"if-match": one.get(f"{path}/export").headers["etag"]}
        ask(one)
        assert one.post(f"{path}/archive", headers=tag).status_code == 412
        tag = {"if-match": one.get(f"{path}/export").headers["etag"]}
        assert one.post(f"{path}/archive", headers=tag).json() == {"archived": "banner"}
        assert two.post(DECIDE).status_code in (409, 503)  # it learns of it now
        for answer in (one.post(DECIDE), two.post(DECIDE), tell(one, waiting), two.get(f"{path}/summary")):
            assert (answer.status_code, answer.json()) == (409, {"error": sentence})
        new = {"name": "banner", "policy": "Thompson", "arms": ["red", "green", "blue"]}
        assert one.post("/v1/players", json=new).json()["error"] == sentence
        with pytest.raises(UserError, match="is archived"):
            Player.open(store, "banner")
        listed = two.get("/v1/players").json()
        assert [[one["name"] for one in listed[key]] for key in ("players", "archived")] == [
            ["other"],
            ["banner"],
        ]
        assert listed["n_players"] == 1
        assert one.post(f"{path}/restore").json() == {"restored": "banner"}
        assert tell(two, waiting).json() == {"learned": True}  # what waited waits still
        assert one.get(f"{path}/summary").json()["decisions"] == 2
        tag = {"if-match": one.get(f"{path}/export").headers["etag"]}
        assert one.post(f"{path}/archive", headers=tag).status_code == 200
        assert two.delete(path, headers=tag).json() == {"deleted": "banner"}
        assert one.post(f"{path}/restore").status_code == 404


def test_a_deleted_player_whose_name_comes_again_is_the_new_one_elsewhere(store, elsewhere):
    with service(store) as one, service(elsewhere) as two:
        banner(one)
        ask(two)
        tag = {"if-match": one.get("/v1/players/banner/export").headers["etag"]}
        assert one.delete("/v1/players/banner", headers=tag).status_code == 200
        banner(one, policy="UCB1", arms=["a", "b"])
        ask(one)
        wait_until(lambda: two.post(DECIDE).json().get("arm") in ("a", "b"))


def test_the_name_of_a_player_may_have_slashes(store):
    with service(store) as client:
        assert (
            client.post("/v1/players", json={"name": "home/banner", "arms": ["a/b", "c"]}).status_code == 201
        )
        found = client.post("/v1/players/home%2Fbanner/decisions").json()
        told = {"decision": found["id"], "reward": 1}
        assert client.post("/v1/players/home%2Fbanner/rewards", json=told).json()["learned"]
        assert client.get("/v1/players/home%2fbanner/summary").json()["name"] == "home/banner"
        assert client.delete("/v1/players/home%2Fbanner/arms/a%2Fb").status_code == 200
        assert client.get("/v1/players/home/banner/summary").status_code == 404
        assert client.get("/v1/players/%FF%00/summary").status_code == 404


def test_many_players_need_no_thread_each(store):
    others = threading.active_count()
    with service(store) as client:
        for number in range(60):
            banner(client, f"p{number}", arms=2)
        before = threading.active_count()
        for number in range(60):
            found = client.post(f"/v1/players/p{number}/decisions").json()
            told = {"decision": found["id"], "reward": 1}
            assert client.post(f"/v1/players/p{number}/rewards", json=told).json()["learned"]
        assert threading.active_count() <= before + 2
        assert before < others + 20


def test_a_player_that_takes_long_works_beside_the_event_loop(shop, monkeypatch):
    monkeypatch.setattr("abex.players.requests.SLOW", 0.0)
    first = ask(shop, unit="ann")
    assert ask(shop, unit="ann") == first
    assert tell(shop, first["id"]).json() == {"learned": True}


# -- refusals ---------------------------------------------------------------------------------------------

WRONG = [
    ("POST", DECIDE, b"{", 400),
    ("POST", DECIDE, b"[]", 400),
    ("POST", DECIDE, b"\xff\xfe", 400),
    ("POST", DECIDE, b'{"unit": 7}', 400),
    ("POST", DECIDE, b'{"unit": ""}', 400),
    ("POST", DECIDE, b'{"unit": "a\\u0000b"}', 400),
    ("POST", DECIDE, b'{"unit": "\\ud800"}', 400),
    ("POST", DECIDE, b'{"key": "' + b"k" * 201 + b'"}', 400),
    ("POST", DECIDE, b'{"arm": "red"}', 400),
    ("POST", "/v1/players/nobody/decisions", b"{}", 404),
    ("POST", "/v1/players/%00/decisions", b"{}", 404),
    ("POST", "/v1/players/%ff%fe/decisions", b"{}", 404),
    ("POST", f"{DECIDE}/batch", b"{}", 400),
    ("POST", f"{DECIDE}/batch", b'{"count": 4}', 400),
    ("POST", f"{DECIDE}/batch", b'{"count": 1, "units": ["a"]}', 400),
    ("POST", f"{DECIDE}/batch", b'{"count": 99999999999999999999999}', 400),
    ("POST", REWARD, b'{"decision": "red", "reward": 1}', 400),
    ("POST", REWARD, json.dumps({"decision": NEVER_MADE, "reward": 1}).encode(), 404),
    ("POST", REWARD, b'{"decision": "ID", "reward": 2}', 400),
    ("POST", REWARD, b'{"decision": "ID", "reward": NaN}', 400),
    ("POST", REWARD, b'{"decision": "ID", "reward": 1e999}', 400),
    ("POST", REWARD, b'{"decision": "ID", "reward": "1"}', 400),
    ("POST", REWARD, b'{"decision": "ID", "reward": 1, "also": {"pink": 1}}', 400),
    ("POST", "/v1/players/banner/observations", b'{"arm": "red", "reward": 1}', 400),
    ("POST", "/v1/players/banner/observations", b'{"arm": "pink", "reward": 1, "key": "k"}', 400),
    ("POST", "/v1/players/banner/arms", b'{"name": "red"}', 400),
    ("PATCH", "/v1/players/banner/arms/red", b'{"name": "green"}', 400),
    ("DELETE", "/v1/players/banner/arms/pink", b"", 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 0}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 1e9}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2000000}', 400),
    ("POST", "/v1/players", b'{"name": "..", "arms": 2}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": ["a", "a"]}', 400),
    (
        "POST",
        "/v1/players",
        b'{"name": "x", "arms": 2, "policy": "__import__(\'os\').system(\'true\')"}',
        400,
    ),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "rewards": [1, 0]}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "expire": -1}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "expire": 1e300}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "edges": [[0, 7]]}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "policy": "MOSS"}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "policy": "ELP"}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "unrewarded": 7}', 400),
    ("POST", "/v1/players", b'{"name": "x", "arms": 2, "rewards": [0]}', 400),
    ("POST", "/v1/players", b'{"name": "banner", "policy": "Thompson", "arms": ["red", "green"]}', 409),
    ("POST", "/v1/players", b'{"name": "banner", "policy": "Thompson", "arms": 2}', 409),
    (
        "POST",
        "/v1/players",
        b'{"name": "banner", "policy": "Thompson", "arms": ["red"], "rewards": [0, 2]}',
        409,
    ),
    ("POST", "/v1/players/banner/arms", b"{}", 400),
    ("POST", "/v1/players/banner/learn", b'{"player": "banner"}', 400),
    ("POST", "/v1/players/banner/learn", b'{"player": "nobody"}', 404),
    ("GET", "/page/nothing", b"", 404),
    ("DELETE", "/v1/players/banner", b"", 428),
    ("GET", "/v1/players/banner/winner?risk=x", b"", 400),
    ("POST", "/v1/players/nobody/archive", b"", 428),
    ("POST", "/v1/players/nobody/restore", b"", 404),
    ("POST", "/v1/players/banner/evaluate", b'{"policies": []}', 400),
    ("GET", "/v1/players/banner/summary?limit=0", b"", 400),
    ("GET", "/v1/players/banner/summary?limit=x", b"", 400),
    ("GET", "/v1/players/banner/log?format=exe", b"", 400),
    ("GET", "/v1/players/banner/log?last=99999999999999", b"", 400),
    ("GET", "/v1/nothing", b"", 404),
    ("PUT", DECIDE, b"{}", 405),
]


#: words of Python, which nobody knows who asks over HTTP
PYTHON = re.compile(r"\w=[^=]|\w\(\)|timedelta|None|True|False|n_arms")


@each(("method", "path", "content", "status"), WRONG)
def test_a_wrong_request_gets_one_sentence_and_changes_nothing(shop, store, method, path, content, status):
    decision = ask(shop)
    before = head(store), shop.get("/v1/players").json()
    content = content.replace(b"ID", decision["id"].encode())
    answer = shop.request(method, path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    sentence = answer.json()["error"]
    assert 0 < len(sentence) < 400
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert sentence[0].isupper()
    assert not PYTHON.search(sentence)
    assert (head(store), shop.get("/v1/players").json()) == before


def test_what_is_too_much_is_refused(store):
    with service(store, max_body=1_000, max_batch=3, max_open=4, max_arms=5, max_players=1) as client:
        banner(client)
        assert client.post(DECIDE, json={"unit": "u" * 2_000}).status_code == 413
        parts = (b" " * 100 for _ in range(20))
        headers = {"content-type": "application/json"}
        assert client.post(DECIDE, content=parts, headers=headers).status_code == 413
        assert client.post(f"{DECIDE}/batch", json={"units": ["a"] * 4}).status_code == 400
        assert client.post("/v1/players", json={"name": "x", "arms": 6}).status_code == 400
        assert client.post("/v1/players", json={"name": "x", "arms": 2}).status_code == 429
        units = [f"u{number}" for number in range(3)]
        assert client.post(f"{DECIDE}/batch", json={"units": units}).status_code == 200
        last = ask(client, unit="u3")
        refused = client.post(DECIDE)
        assert refused.status_code == 429
        assert "'banner' has 4 decisions that wait" in refused.json()["error"]
        assert ask(client, unit="u3") == last  # it has one already
        assert tell(client, last["id"]).status_code == 200
        assert client.post(DECIDE).status_code == 200


def key_file(folder, *lines):
    """A file of keys."""
    (folder / "keys.txt").write_text("\n".join(lines))
    return KeyFile(str(folder / "keys.txt"))


def test_every_endpoint_asks_for_the_key_of_its_role(store, tmp_path):
    keys = {role: new_key(role) for role in ROLES}
    assert not any(key in line for key, line in keys.values())
    with service(
        store, keys=key_file(tmp_path, *(line for _, line in keys.values())), host="0.0.0.0"
    ) as client:
        for one in ROUTES:
            path = one.path.replace("{name}", "nobody").replace("{arm}", "x")
            for role in (None, "wrong", *ROLES):
                key = None if role is None else "abex_wrong" if role == "wrong" else keys[role][0]
                headers = {} if key is None else {"authorization": f"Bearer {key}"}
                status = client.request(one.method, path, headers=headers).status_code
                if one.role is None or role in (one.role, "admin"):
                    assert status in (200, 400, 404, 428), (one.name, role)
                else:
                    assert status == (401 if role in (None, "wrong") else 403), (one.name, role)


def test_beyond_loopback_only_with_keys_or_behind_a_proxy(store):
    for host in ("0.0.0.0", "::", "192.168.1.7", "example.org"):
        with pytest.raises(UserError, match="can be reached from elsewhere"):
            Settings(store, host=host)
        Settings(store, host=host, behind_proxy=True)
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        Settings(store, host=host)


FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:3000"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://localhost"},
]


@each("headers", FOREIGN)
@each("content", [b"", b"{}"])
def test_a_web_page_elsewhere_changes_nothing(shop, store, headers, content):
    headers = headers | ({"content-type": "application/json"} if content else {})
    before = head(store)
    for one in ROUTES:
        if one.method != "GET":
            path = one.path.replace("{name}", "banner").replace("{arm}", "red")
            answer = shop.request(one.method, path, content=content, headers=headers)
            assert answer.status_code == 403, one.name
    assert head(store) == before
    own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert shop.post(DECIDE, headers=own).status_code == 200


def test_a_key_is_no_cookie_so_pages_elsewhere_may_send_one(store, tmp_path):
    key, line = new_key("admin")
    headers = {"origin": "https://shop.example", "sec-fetch-site": "cross-site"}
    with service(store, keys=key_file(tmp_path, line)) as client:
        banner_headers = headers | {"authorization": f"Bearer {key}"}
        new = {"name": "banner", "arms": 2}
        assert client.post("/v1/players", json=new, headers=banner_headers).status_code == 201
        assert client.post(DECIDE, headers=headers).status_code == 401
    with service(store, behind_proxy=True) as client:
        assert client.post(DECIDE, headers=headers).status_code == 403
        assert client.post(DECIDE, headers={"origin": "https://shop.example"}).status_code == 200


def test_a_web_page_elsewhere_cannot_use_a_service_without_keys(shop):
    assert shop.post(DECIDE, headers={"host": "evil.example"}).status_code == 421
    assert shop.post(DECIDE, headers={"content-type": "text/plain"}).status_code == 415
    assert shop.get("/v1/players", headers={"host": "evil.example:8080"}).status_code == 421
    assert shop.get("/v1/players", headers={"host": "127.0.0.1:8080"}).status_code == 200
    form = {"content-type": "text/plain"}  # what a page may send without asking
    assert shop.post(DECIDE, content=b'{"unit": "a"}', headers=form).status_code == 415


@each("text", ["", "admin", "boss sha256:00", "admin md5:00", "admin sha256:zz"])
def test_a_wrong_file_of_keys_is_refused(tmp_path, text):
    (tmp_path / "keys.txt").write_text(text)
    with pytest.raises(UserError, match="keys"):
        KeyFile(str(tmp_path / "keys.txt"))


def test_keys_are_read_again_when_their_file_changes(store, tmp_path, monkeypatch):
    monkeypatch.setattr("abex.service.keys.LOOK_SECONDS", 0.0)
    (first, line), (second, other) = new_key("read"), new_key("read")
    file = tmp_path / "keys.txt"
    file.write_text(line)

    def statuses():
        return [
            client.get("/v1/players", headers={"authorization": f"Bearer {key}"}).status_code
            for key in (first, second)
        ]

    with service(store, keys=KeyFile(str(file)), host="0.0.0.0") as client:
        assert statuses() == [200, 401]
        file.write_text(f"{line}\n{other}\n")
        assert statuses() == [200, 200]
        file.write_text("nonsense")  # half written: the former keys hold
        assert statuses() == [200, 200]
        file.unlink()
        assert statuses() == [200, 200]
        file.write_text(other)
        assert statuses() == [401, 200]
        file.write_text("# nobody any more\n")
        assert statuses() == [401, 401]
        unknown = client.get("/v1/players", headers={"authorization": f"Bearer {first}"})
        assert unknown.json()["error"] == "This API key is not known"
        assert "is needed" in client.get("/v1/players").json()["error"]


def test_what_anybody_may_ask_tells_nothing_of_the_store(tmp_path):
    _, line = new_key("admin")
    store = "postgresql://secret_user:word@nowhere.invalid:1/secret_database"
    with service(store, keys=key_file(tmp_path, line), host="0.0.0.0") as client:
        answer = client.get("/ready")
    assert answer.status_code == 503
    assert not any(word in answer.text for word in ("secret", "word", "nowhere"))


def test_exceptions_of_the_event_loop_are_lines_of_json():
    code = (
        "import asyncio, logging.config\nfrom abex.service.run import LOGGING\n"
        "logging.config.dictConfig(LOGGING)\nloop = asyncio.new_event_loop()\n"
        "loop.call_soon(lambda: 1 / 0)\nloop.call_later(0.01, loop.stop)\nloop.run_forever()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert "ZeroDivisionError" in json.loads(line)["trace"]


# -- looking ----------------------------------------------------------------------------------------------


def played(client, steps=300, seed=1):
    """Decisions with rewards; red pays most."""
    rng = np.random.default_rng(seed)
    means = {"red": 0.6, "green": 0.5, "blue": 0.4}
    for _ in range(steps // 50):
        found = client.post(f"{DECIDE}/batch", json={"units": [None] * 50}).json()["decisions"]
        rewards = [{"decision": one["id"], "reward": bool(rng.random() < means[one["arm"]])} for one in found]
        assert client.post(f"{REWARD}/batch", json={"rewards": rewards}).status_code == 200


def test_the_log_in_three_formats_says_the_same(shop, tmp_path):
    played(shop, 100)
    ask(shop)  # waits
    logs = []
    for kind in ("csv", "parquet", "dsjson"):
        content = shop.get(f"/v1/players/banner/log?format={kind}").content
        (tmp_path / f"log.{kind}").write_bytes(content)
        logs.append(Log.read(tmp_path / f"log.{kind}"))
    assert [len(log) for log in logs] == [100] * 3
    for log in logs[1:]:
        np.testing.assert_allclose(log.probability, logs[0].probability)
        np.testing.assert_array_equal(log.reward, logs[0].reward)
    assert len(pd.read_csv(io.BytesIO(shop.get("/v1/players/banner/log?last=7").content))) == 7


def test_other_policies_are_valued_on_the_log(store):
    body = {"policies": ["Uniform", "EpsilonGreedy(epsilon=0.2)", "Nonsense"], "learn": 0.4}
    with service(store) as client:
        banner(client, policy="EpsilonGreedy(epsilon=0.8)")  # tries everything, so that the log can tell
        played(client)
        found = client.post("/v1/players/banner/evaluate", json=body).json()
    assert found["rows"] == 300
    uniform, greedy, nonsense = found["policies"]
    value = next(one for one in uniform["estimates"] if one["estimator"] == "SNIPS")
    assert (
        0.3 < value["low"] < value["value"] < value["high"] < 0.7
    )  # half of it is 0.06: four errors and more
    assert greedy["learned"] == 120
    assert nonsense["error"].startswith("Unknown policy")


def test_the_timeline_agrees_with_the_log(store):
    with service(store) as shop:
        banner(shop, policy="EpsilonGreedy(epsilon=0.6)")
        compare_timeline(shop)


def compare_timeline(shop):
    """Everything is worked out again from the log."""
    played(shop)
    ask(shop)
    frame = pd.read_csv(io.BytesIO(shop.get("/v1/players/banner/log").content))
    timeline = shop.get("/v1/players/banner/timeline").json()
    counts = {arm: 0.0 for arm in timeline["arms"]}
    for bucket in timeline["buckets"]:
        for arm, share in zip(timeline["arms"], bucket["shares"] or [], strict=False):
            counts[arm] += share * bucket["decisions"]
    assert {arm: round(count) for arm, count in counts.items()} == frame["arm"].value_counts().to_dict()
    done = frame[frame["status"] == "rewarded"]
    assert timeline["reward"] == pytest.approx(done["reward"].sum())
    assert timeline["buckets"][-1]["reward"] == pytest.approx(timeline["reward"])
    found = evaluate(Log.from_frame(frame), "Uniform")["SNIPS"]
    assert timeline["uniform"] == pytest.approx([300 * end for end in (found.value, *found.interval)])
    played(shop, 50, seed=2)  # the next look reads on
    assert shop.get("/v1/players/banner/timeline").json()["buckets"][-1]["rewards"] == 350


def test_a_long_timeline_is_told_in_wider_buckets_that_lose_nothing(tmp_path):
    clock = Clock()
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "Uniform", n_arms=2, clock=clock) as player:
        for step in range(250):  # of a second each, where there is room for a hundred
            clock.now += 1.0
            player.update(player.decide(), float(step % 2))
        found = Timeline(player.definition)
        found.read_on(player)
    told = found.as_json()
    assert told["bucket_milliseconds"] == 4_000
    assert told["buckets"][-1]["rewards"] == sum(one["decisions"] for one in told["buckets"]) == 250
    assert told["reward"] == 125.0


def test_the_recent_share_is_that_of_the_arm_where_others_have_gone(tmp_path):
    with Player.open(
        f"sqlite:///{tmp_path}/shop.db", "x", "Uniform", arms=["red", "green", "blue"]
    ) as player:
        chosen = player.select(3) + [player.select() for _ in range(30)]
        player.remove_arm("red")
        shares = {one["arm"]: one["recent_share"] for one in summary_of(player, 10)["arms"]}
    assert shares == {arm: pytest.approx(chosen.count(arm) / 33) for arm in ("green", "blue")}


def test_a_policy_that_is_sure_gives_no_estimate_of_uniform_choice(shop):
    banner(shop, "sure", "UCB1")
    for _ in range(60):
        found = shop.post("/v1/players/sure/decisions").json()
        shop.post("/v1/players/sure/rewards", json={"decision": found["id"], "reward": found["arm"] == "red"})
    timeline = shop.get("/v1/players/sure/timeline").json()
    assert timeline["uniform"] is None
    assert "average" in timeline["uniform_unknown"]


def test_metrics_tell_of_requests_and_players(shop):
    for _ in range(3):
        tell(shop, ask(shop)["id"])
    ask(shop)
    text = shop.get("/metrics").text
    for line in (
        'abex_requests_total{endpoint="decide",status="200"} 4.0',
        'abex_decisions_total{player="banner"} 4.0',
        'abex_rewards_total{player="banner"} 3.0',
        'abex_open_decisions{player="banner"} 1.0',
        'abex_request_seconds_count{endpoint="reward"} 3.0',
        'abex_oldest_open_decision_seconds{player="banner"}',
        'abex_arm_share{arm="',
        'abex_instance_decisions_total{player="banner"} 4.0',
        'abex_instance_rewards_total{player="banner"} 3.0',
    ):
        assert line in text
    for arm in shop.get("/v1/players/banner/summary").json()["arms"]:
        labels = f'{{arm="{arm["arm"]}",player="banner"}}'
        assert f"abex_arm_rewards_total{labels} {float(arm['observations'])}" in text
        assert f"abex_arm_reward_sum{labels} {float(arm['observations'])}" in text  # each reward was 1


def test_workers_add_up_and_what_a_killed_one_counted_stays(tmp_path):
    code = """
import sys
from abex.players.changes import Aliases
from abex.service.metrics import Metrics

metrics, many = Metrics(), int(sys.argv[1])
metrics.connections.inc(many)
metrics.decisions.labels("x").inc(many)
for _ in range(many):
    metrics.requests.labels("decide", "200").inc()
    metrics.seconds.labels("decide").observe(0.003)
input()
print(metrics.text([], Aliases()).decode())
"""

    def worker(many):
        return subprocess.Popen(
            [sys.executable, "-c", code, str(many)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {FOLDER: str(tmp_path)},
        )  # fmt: skip

    killed = worker(3)
    killed.communicate("\n")
    mark_process_dead(killed.pid, str(tmp_path))
    text = worker(2).communicate("\n")[0]
    for line in (
        "abex_connections 2.0",
        'abex_instance_decisions_total{player="x"} 5.0',
        'abex_requests_total{endpoint="decide",status="200"} 5.0',
        'abex_request_seconds_bucket{endpoint="decide",le="0.002"} 0.0',
        'abex_request_seconds_bucket{endpoint="decide",le="0.005"} 5.0',
        'abex_request_seconds_count{endpoint="decide"} 5.0',
    ):
        assert f"\n{line}\n" in text


def test_an_event_counts_in_the_instance_that_wrote_it(store, elsewhere):
    with service(store) as one, service(elsewhere) as two:
        banner(one)
        first = ask(one, key="k")
        assert [ask(client, key="k") for client in (one, two)] == [first] * 2  # no new decision
        assert [tell(client, first["id"], 0.75).json()["learned"] for client in (two, one)] == [True, False]
        texts = [client.get("/metrics").text for client in (one, two)]
    for metric, counts in (
        ("decisions_total", (1.0, 0.0)),
        ("rewards_total", (0.0, 1.0)),
        ("reward_sum", (0.0, 0.75)),
    ):
        found = [
            float(re.search(f'^abex_instance_{metric}{{player="banner"}} (.*)$', text, re.M)[1])
            for text in texts
        ]
        assert found == list(counts)


def test_a_decision_that_is_void_counts_in_no_instance():
    """Another worker decided for the same unit a moment before: its decision stands for this one."""
    ours, theirs, alone = (Decided(name, 1, 0, 1) for name in ("ours", "theirs", "alone"))
    entries = [Proposal(ours), Proposal(alone)]
    entries[0].written(theirs)
    entries[1].written(alone)
    player = SimpleNamespace(settings=PlayerSettings(), _lock=contextlib.nullcontext())
    counts = []

    async def counted():
        future = asyncio.get_running_loop().create_future()
        future.cancel()  # the client has gone
        queue = RequestQueue(player, counters=[SimpleNamespace(inc=counts.append)] * 3)
        queue._answer([SimpleNamespace(entries=entries, future=future)])

    asyncio.run(counted())
    assert counts == [1, 0, 0]


def test_what_fails_is_a_line_of_json_in_the_log(shop, caplog):
    from abex.service.run import JsonLines

    logger = __import__("logging").getLogger("abex.serve")
    logger.propagate = True
    with caplog.at_level("INFO", "abex.serve"):
        shop.post(DECIDE, json={"unit": 7})
    line = json.loads(JsonLines().format(caplog.records[-1]))
    assert (line["endpoint"], line["status"], line["level"]) == ("decide", 400, "info")
    assert "unit" in line["error"]


def test_a_store_that_is_away_is_503_and_then_works_again(shop, monkeypatch, caplog):
    decision = ask(shop)
    away = threading.Event()
    append = SqliteJournal._append

    def broken(self, batch):
        if away.is_set():
            raise OSError(5, "the disk is away")
        return append(self, batch)

    away.set()
    monkeypatch.setattr(SqliteJournal, "_append", broken)
    caplog.set_level("INFO", "abex.serve")
    monkeypatch.setattr(logging.getLogger("abex.serve"), "propagate", True)
    for answer in (shop.post(DECIDE, json={"key": "again"}), tell(shop, decision["id"])):
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("The store cannot be reached just now")
        assert answer.headers["retry-after"]
        assert "the disk is away" in caplog.records[-1].fields["error"]  # what is told to whoever runs it
    assert shop.get("/health").status_code == 200
    away.clear()
    assert tell(shop, decision["id"]).json() == {"learned": True}
    assert ask(shop, key="again")["arm"]
    assert shop.get("/v1/players/banner/summary").json()["decisions"] == 2

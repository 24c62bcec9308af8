"""Aliases and administrative changes over HTTP: who decides, late rewards, batches, refusals, keys, workers."""

import asyncio
import contextlib
import os
from collections import Counter

import httpx
import pytest

from abex import Player
from abex.client import AsyncClient, Client, ServiceError
from abex.players import Store
from abex.players.changes import ALIAS_ROLLED_BACK, ALIAS_SET
from abex.service.keys import KeyFile, new_key
from tests.service.serving import NEVER_MADE, command, patient, service, workers
from tests.service.test_client import AsyncFlaky, Flaky
from tests.waiting import PATIENCE, wait_until

ALIAS, DECIDE = "/v1/aliases/home%2Fbanner", "/v1/players/home%2Fbanner/decisions"
REWARD = "/v1/players/home%2Fbanner/rewards"


@pytest.fixture
def shop(store):
    with service(store) as client:
        make(client)
        yield client


def make(client, **split):
    """Two players and an alias of them."""
    for name in ("v1", "v2"):
        body = {"name": name, "policy": "Thompson", "arms": ["red", "green"]}
        assert client.post("/v1/players", json=body).status_code == 201
    switch(client, split or {"v1": 100})


def switch(client, split):
    answer = client.put(ALIAS, json={"split": split})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"name": "home/banner", "split": split}


def ask(client, **body):
    answer = client.post(DECIDE, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def tell(client, decision, reward=1.0):
    return client.post(REWARD, json={"decision": decision, "reward": reward})


def rewarded(client):
    """Of each player, how many decisions had their reward."""
    return [client.get(f"/v1/players/{name}/summary").json()["rewarded"] for name in ("v1", "v2")]


def test_a_unit_falls_to_the_same_player_until_the_split_moves_it(store, elsewhere):
    units = [f"u{number}" for number in range(200)]
    with service(store) as one, service(elsewhere) as two:
        make(one, v1=90, v2=10)
        before = {unit: ask(one, unit=unit)["player"] for unit in units}
        assert 5 <= Counter(before.values())["v2"] <= 40
        assert {unit: ask(two, unit=unit)["player"] for unit in units} == before
        switch(one, {"v1": 70, "v2": 30})
        after = {unit: ask(one, unit=unit)["player"] for unit in units}
        assert all(after[unit] == "v2" for unit in units if before[unit] == "v2")
        assert 35 <= Counter(after.values())["v2"] <= 90
        assert one.post(f"{ALIAS}/rollback").json()["split"] == {"v1": 90, "v2": 10}
        assert {unit: ask(one, unit=unit)["player"] for unit in units} == before
        wait_until(lambda: {unit: ask(two, unit=unit)["player"] for unit in units} == before)


def test_without_a_unit_the_key_decides_and_without_either_a_draw(shop):
    switch(shop, {"v1": 50, "v2": 50})
    first = ask(shop, key="k1")
    assert ask(shop, key="k1") == first
    assert {ask(shop, key=f"k{number}")["player"] for number in range(30)} == {"v1", "v2"}
    assert {ask(shop)["player"] for _ in range(30)} == {"v1", "v2"}


def test_late_rewards_find_their_player_whatever_the_alias_says_now(store, elsewhere):
    with service(store) as one, service(elsewhere) as two:
        make(one)
        early = [ask(one, unit=f"a{number}") for number in range(4)]
        switch(one, {"v2": 100})
        late = [ask(one, unit=f"a{number}") for number in range(4)]
        assert {one["player"] for one in early} == {"v1"}
        assert {one["player"] for one in late} == {"v2"}
        assert tell(one, early[0]["id"]).json() == {"learned": True}
        assert tell(two, early[1]["id"]).json() == {"learned": True}  # which has neither open
        assert one.post(f"{ALIAS}/rollback").status_code == 200
        assert tell(two, late[0]["id"]).json() == {"learned": True}
        assert tell(one, late[0]["id"]).json() == {"learned": False}
        assert tell(one, late[1]["id"]).json() == {"learned": True}
        assert rewarded(one) == [2, 2]
        assert tell(one, NEVER_MADE).status_code == 404
        assert (
            "was made by no player that the alias 'home/banner' names or has named"
            in tell(one, NEVER_MADE).json()["error"]
        )


def test_a_reward_for_a_player_that_was_archived_or_deleted_since_is_a_sentence(shop):
    first = ask(shop)["id"]
    switch(shop, {"v2": 100})
    tag = {"if-match": shop.get("/v1/players/v1/export").headers["etag"]}
    assert shop.post("/v1/players/v1/archive", headers=tag).status_code == 200
    assert tell(shop, first).status_code == 404
    assert tell(shop, ask(shop)["id"]).json() == {"learned": True}
    assert shop.post("/v1/players/v1/restore").status_code == 200
    assert tell(shop, first).json() == {"learned": True}
    tag = {"if-match": shop.get("/v1/players/v1/export").headers["etag"]}
    assert shop.delete("/v1/players/v1", headers=tag).status_code == 200
    assert tell(shop, first).status_code == 404
    assert tell(shop, ask(shop)["id"]).json() == {"learned": True}


def test_batches_go_to_the_players_of_their_units(shop):
    switch(shop, {"v1": 50, "v2": 50})
    units = [*(f"u{number}" for number in range(20)), None, None]
    body = {"units": units, "key": "k"}
    made = shop.post(f"{DECIDE}/batch", json=body).json()["decisions"]
    assert shop.post(f"{DECIDE}/batch", json=body).json()["decisions"] == made
    assert [one["player"] for one in made[:20]] == [ask(shop, unit=unit)["player"] for unit in units[:20]]
    assert {one["player"] for one in made} == {"v1", "v2"}
    several = shop.post(f"{DECIDE}/batch", json={"count": 2}).json()["decisions"]
    assert {one["arm"] for one in several} == {"red", "green"}
    assert len({one["player"] for one in several}) == 1
    rewards = [{"decision": one["id"], "reward": 1.0} for one in made]
    wrong = [*rewards[:-1], rewards[-1] | {"reward": 7.0}]
    for batch, status in ((wrong, 400), ([*rewards, {"decision": NEVER_MADE, "reward": 1}], 404)):
        assert shop.post(f"{REWARD}/batch", json={"rewards": batch}).status_code == status
        assert rewarded(shop) == [0, 0]  # all, or none
    learned = shop.post(f"{REWARD}/batch", json={"rewards": [rewards[0], *rewards]}).json()["learned"]
    assert sorted(learned[:2]) == [False, True]
    assert learned[2:] == [True] * 21
    assert sum(rewarded(shop)) == 22


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("PUT", ALIAS, {"split": {"v1": 50}}, 400, "A split must sum to 100 per cent, and 'v1' 50 % sums to 50"),
        ("PUT", ALIAS, {"split": {"v1": 50.5, "v2": 49.5}}, 400, "The field \"split"),
        ("PUT", ALIAS, {"split": {}}, 400, 'The field "split" is wrong'),
        ("PUT", ALIAS, {"split": {"v9": 100}}, 409, "There is no player 'v9'"),
        ("PUT", ALIAS, {"split": {"\n": 100}}, 400, "A player of a split must be 1 to 200 printable"),
        ("PUT", "/v1/aliases/x", {"split": {"home/banner": 100}}, 409, "'home/banner' is an alias, of"),
        ("PUT", "/v1/aliases/v1", {"split": {"v2": 100}}, 409, "There is a player 'v1'"),
        ("PUT", "/v1/aliases/%20.", {"split": {"v2": 100}}, 400, "' .' is no name for an alias"),
        ("PUT", "/v1/aliases/%00", {"split": {"v2": 100}}, 400, "is no name for an alias"),
        ("POST", f"{ALIAS}/rollback", {}, 409, "The alias 'home/banner' has had no other split"),
        ("POST", "/v1/aliases/nix/rollback", {}, 404, "There is no alias 'nix'"),
        ("DELETE", "/v1/aliases/nix", None, 404, "There is no alias 'nix'"),
        ("GET", ALIAS, None, 405, "has no method 'GET'"),
        ("POST", "/v1/players", {"name": "home/banner", "arms": 2}, 409, "'home/banner' is an alias, of 'v1' 100 %"),
        ("POST", "/v1/players/home%2Fbanner/observations", {"arm": "red", "reward": 1, "key": "k"}, 409, "is an alias, of"),
        ("GET", "/v1/players/home%2Fbanner/summary", None, 409, "'home/banner' is an alias, of 'v1' 100 %, and no player"),
        ("GET", "/v1/changes?limit=0", None, 400, "Limit must be"),
        ("GET", "/v1/changes?before=x", None, 400, "Before must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence_and_changes_nothing(shop, method, path, body, status, said):
    before = shop.get("/v1/changes").json()
    answer = shop.request(method, path, json=body)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert shop.get("/v1/changes").json() == before
    assert ask(shop)["player"] == "v1"


def test_a_player_that_an_alias_needs_is_neither_deleted_nor_archived(shop):
    tag = {"if-match": shop.get("/v1/players/v1/export").headers["etag"]}
    for answer in (
        shop.delete("/v1/players/v1", headers=tag),
        shop.post("/v1/players/v1/archive", headers=tag),
    ):
        said = {"error": "The alias 'home/banner' sends units to 'v1': change it first"}
        assert (answer.status_code, answer.json()) == (409, said)
    assert shop.delete(ALIAS).json() == {"name": "home/banner", "split": None}
    assert shop.delete("/v1/players/v1", headers=tag).status_code == 200
    assert shop.post(DECIDE).status_code == 404


def test_everything_an_administrator_does_is_noted_under_the_name_of_the_key(store, tmp_path):
    named = {text.partition(" ")[0]: new_key(text) for text in ("admin ann b", "decide", "read")}
    (tmp_path / "keys.txt").write_text("".join(f"{line}\n" for _, line in named.values()))
    keys = {role: {"authorization": f"Bearer {key}"} for role, (key, _) in named.items()}
    with service(store, keys=KeyFile(tmp_path / "keys.txt")) as client:
        assert client.put(ALIAS, json={"split": {"v1": 100}}, headers=keys["decide"]).status_code == 403
        assert client.get("/v1/changes", headers=keys["decide"]).status_code == 403
        client.headers.update(keys["admin"])
        make(client)
        client.post("/v1/players/v1/arms", json={"name": "blue"})
        client.patch("/v1/players/v1/arms/blue", json={"name": "navy"})
        client.delete("/v1/players/v1/arms/navy")
        new = {"name": "v1", "policy": "Thompson", "arms": ["red", "green", "new"], "on_new_arms": "add"}
        client.post("/v1/players", json=new)
        client.post("/v1/players/v2/learn", json={"player": "v1"})
        switch(client, {"v2": 100})
        tag = {"if-match": client.get("/v1/players/v1/export").headers["etag"]}
        for method, path in (
            ("POST", "/archive"),
            ("POST", "/restore"),
            ("POST", "/restore"),
            ("DELETE", ""),
        ):
            assert client.request(method, f"/v1/players/v1{path}", headers=tag).status_code == 200
        tell(client, ask(client)["id"])  # no administrative request
        client.delete(ALIAS)
        found = client.get("/v1/changes", headers=keys["read"]).json()["changes"]
        first = client.get(f"/v1/changes?limit=3&before={found[-3]['seq']}").json()["changes"]
    made, v1, v2 = {"policy": "Thompson", "arms": 2}, {"v1": 100}, {"v2": 100}
    assert [(one["what"], one["name"], one.get("before"), one.get("after")) for one in reversed(found)] == [
        ("player made", "v1", None, made),
        ("player made", "v2", None, made),
        (ALIAS_SET, "home/banner", None, v1),
        ("arm added", "v1", None, "blue"),
        ("arm renamed", "v1", "blue", "navy"),
        ("arm removed", "v1", "navy", None),
        ("arm added", "v1", None, "new"),
        ("player learned", "v2", None, {"from": "v1"}),
        (ALIAS_SET, "home/banner", v1, v2),
        ("player archived", "v1", None, None),
        ("player restored", "v1", None, None),
        ("player deleted", "v1", {"events": 4}, None),
        ("alias removed", "home/banner", v2, None),
    ]
    assert {one["who"] for one in found} == {"admin ann b"}
    assert first == found[-2:]


def test_without_keys_the_address_of_the_client_is_noted(shop):
    assert {one["who"] for one in shop.get("/v1/changes").json()["changes"]} == {"client testclient"}


def test_the_list_and_the_metrics_have_the_aliases(shop):
    switch(shop, {"v1": 90, "v2": 10})
    ask(shop)
    assert shop.get("/v1/players").json()["aliases"] == {"home/banner": {"v1": 90, "v2": 10}}
    text = shop.get("/metrics").text
    assert 'abex_alias_share{alias="home/banner",player="v1"} 0.9' in text
    assert 'abex_alias_share{alias="home/banner",player="v2"} 0.1' in text


def test_the_client_knows_aliases_and_a_rollback_whose_answer_is_lost_counts_once(store):
    with service(store) as app:
        make(app)
        with Client("http://localhost", transport=Flaky(app)) as client:
            client.alias("home/banner", {"v1": 60, "v2": 40})
            client._http._transport.plan = ["answer lost"]
            client.alias("home/banner", {"v2": 100})
            assert client.aliases() == {"home/banner": {"v2": 100}}
            choice = client.decide("home/banner", unit="ann")
            assert choice.player == "v2"
            client._http._transport.plan = ["answer lost", "later"]
            assert client.rollback("home/banner") == {"v1": 60, "v2": 40}
            assert client.reward("home/banner", choice.id, 1.0)
            several = client.decide_many("home/banner", units=[f"u{number}" for number in range(9)])
            assert client.reward_many("home/banner", [(one.id, 1.0) for one in several]) == [True] * 9
            assert [one["what"] for one in client.changes(2)] == [ALIAS_ROLLED_BACK, ALIAS_SET]
            assert client.changes(1, before=3)[0]["seq"] == 2
            client.remove_alias("home/banner")
            assert client.aliases() == {}
            with pytest.raises(ServiceError, match="There is no alias 'home/banner'"):
                client.rollback("home/banner")


def test_the_same_in_asyncio(store):
    async def play(app):
        async with AsyncClient("http://localhost", transport=AsyncFlaky(app)) as client:
            await client.alias("home/banner", {"v2": 100})
            choice = await client.decide("home/banner")
            assert await client.rollback("home/banner") == {"v1": 100}
            assert await client.reward("home/banner", choice.id, 1.0)
            assert (await client.changes(1))[0]["what"] == ALIAS_ROLLED_BACK
            await client.remove_alias("home/banner")
            return await client.aliases()

    with service(store) as app:
        make(app)
        assert asyncio.run(play(app)) == {}


def test_workers_of_several_processes_follow_and_lose_no_click(store):
    """A switch and a rollback while clicks are on their way, and the worker that made the switch is killed."""
    with command(store, "--workers", "2") as (process, address), contextlib.ExitStack() as stack:
        one = stack.enter_context(patient(address))
        for name in ("v1", "v2"):
            one.create(name, ["red", "green"], "Thompson")
        one.alias("home", {"v1": 100})

        def fresh():  # by a connection of its own: any of the workers
            with patient(address) as client:
                return client.decide("home")

        early = [fresh() for _ in range(10)]
        one.alias("home", {"v2": 100})
        os.kill(workers(process.pid)[0], 9)
        for _ in range(10):
            wait_until(lambda: fresh().player == "v2")
        late = [fresh() for _ in range(10)]
        assert {choice.player for choice in late} == {"v2"}
        one.rollback("home")
        for choice in (*early, *late):
            with patient(address) as client:
                assert client.reward("home", choice.id, 1.0)
        wait_until(lambda: {fresh().player for _ in range(5)} == {"v1"})
        assert [one["what"] for one in one.changes(2)] == [ALIAS_ROLLED_BACK, ALIAS_SET]
        answer = httpx.get(f"{address}/v1/players", timeout=PATIENCE).json()
        assert answer["aliases"] == {"home": {"v1": 100}}
    with Store.open(store) as here:
        assert here.aliases() == {"home": {"v1": 100}}
        players = [Player.open(store, name, compiled=False) for name in ("v1", "v2")]
        assert [player._state.tallies.rewarded for player in players] == [10, 10]

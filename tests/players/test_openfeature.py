"""The provider of OpenFeature, asked by the client of its SDK."""

import asyncio

import pytest

pytest.importorskip("openfeature")
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.track import TrackingEventDetails

from abex import Player
from abex.openfeature import AbexProvider
from abex.players import Store

ANN, BOB = EvaluationContext("ann"), EvaluationContext("bob")


@pytest.fixture
def provide():
    """A client of a provider of its own."""

    def found(players, **more):
        api.set_provider(AbexProvider(players, **more), "tests")
        return api.get_client("tests")

    yield found
    api.clear_providers()


def one(*arms, **more):
    return Player(arms=list(arms), seed=1, propensities=True, **more)


def test_a_flag_is_the_arm_of_its_player_and_stays_until_it_is_rewarded(provide):
    banner = one("red", "green")
    client = provide({"banner": banner}, events={"clicked": "banner"})
    shown = client.get_string_details("banner", "grey", ANN)
    assert shown.value == shown.variant
    assert shown.value in ("red", "green")
    assert shown.reason == "SPLIT"
    assert shown.flag_metadata == {"decision": banner.waiting("ann").id, "probability": 0.5}
    for _ in range(5):
        assert client.get_string_details("banner", "grey", ANN) == shown
    assert sum(row.pulls for row in banner.summary()) == 1
    client.track("clicked", ANN, TrackingEventDetails(0.5))
    client.track("clicked", ANN, TrackingEventDetails(0.5))  # nothing waits for her any more
    (row,) = [row for row in banner.summary() if row.observations]
    assert (row.arm, row.observations, row.mean) == (shown.value, 1, 0.5)
    assert (
        client.get_string_details("banner", "grey", ANN).flag_metadata["decision"]
        != shown.flag_metadata["decision"]
    )


def test_an_event_says_by_its_attributes_what_it_is_about(provide):
    banner = one("red", "green")
    client = provide({"banner": banner})
    made = client.get_string_details("banner", "grey").flag_metadata["decision"]  # for nobody in particular
    client.track("bought", BOB, TrackingEventDetails(1.0, {"flag": "banner"}))  # nothing was shown to him
    client.track("bought")  # an event of nobody, about no flag
    assert not sum(row.observations for row in banner.summary())
    client.track("bought", None, TrackingEventDetails(1.0, {"flag": "banner", "decision": made}))
    assert sum(row.observations for row in banner.summary()) == 1


def test_a_process_hears_of_what_another_one_has_shown(provide, tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Store.open(url) as here, Player.open(url, "home/banner", arms=["red", "green"]) as there:
        client = provide(here, events={"clicked": ["home/banner"]})
        there.decide(unit="ann")
        there.flush()
        client.track("clicked", ANN)
        there.refresh()
        assert sum(row.observations for row in there.summary()) == 1


def test_a_flag_may_be_an_alias_and_late_events_find_their_player(provide, tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        players = {name: store.player(name, "UCB1", arms=[name, "other"]) for name in ("v1", "v2")}
        store.alias("banner", {"v1": 100})
        client = provide(store, events={"clicked": "banner"})
        early = [client.get_string_details("banner", "grey", who) for who in (ANN, BOB)]
        store.alias("banner", {"v2": 100})
        late = client.get_string_details("banner", "grey", ANN)
        assert players["v2"].waiting("ann").id == late.flag_metadata["decision"]
        client.track("clicked", BOB)  # who has seen the former one alone
        client.track("clicked", ANN)  # who has seen both: the latter
        client.track("clicked", ANN)
        about = {"decision": early[0].flag_metadata["decision"]}
        client.track("clicked", EvaluationContext(), TrackingEventDetails(1.0, about))  # it has its reward
        rewarded = {name: [row.observations for row in one.summary()] for name, one in players.items()}
        assert {name: sum(counts) for name, counts in rewarded.items()} == {"v1": 2, "v2": 1}


def test_flags_of_other_types_have_arms_that_read_as_such(provide):
    client = provide(
        {
            "switch": one("on", "off"),
            "size": one("10", "20"),
            "rate": one("0.5", "0.25"),
            "page": one("a", "b"),
        }
    )
    assert client.get_boolean_value("switch", False, ANN) in (True, False)
    assert client.get_integer_value("size", 1, ANN) in (10, 20)
    assert client.get_float_value("rate", 1.0, ANN) in (0.5, 0.25)
    pages = {"a": {"title": "A"}, "b": {"title": "B"}}
    assert client.get_object_value("page", pages, ANN) in pages.values()
    wrong = client.get_integer_details("page", 7, ANN)
    assert (wrong.value, wrong.error_code) == (7, ErrorCode.TYPE_MISMATCH)
    assert "is no int" in wrong.error_message


def test_what_is_not_there_has_its_default_and_a_sentence(provide, tmp_path):
    client = provide({"banner": one("red", "green")})
    for found in (
        client.get_string_details("header", "grey", ANN),
        client.get_boolean_details("header", True, ANN),
    ):
        assert found.value in ("grey", True)
        assert found.error_code == ErrorCode.FLAG_NOT_FOUND
        assert "there are: banner" in found.error_message
    with Store.open(f"sqlite:///{tmp_path}/none.db") as store:
        assert provide(store).get_string_details("banner", "grey", ANN).error_code == ErrorCode.FLAG_NOT_FOUND


def test_an_application_of_asyncio_asks_the_same(provide):
    banner = one("red", "green")
    client = provide({"banner": banner})

    async def ask():
        return await client.get_string_value_async("banner", "grey", ANN)

    assert asyncio.run(ask()) == client.get_string_value("banner", "grey", ANN)

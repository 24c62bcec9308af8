"""The shop in examples/shop: its workers find the best banner, by the player and over HTTP, and lose nothing that counted."""

from collections import Counter
from functools import partial

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
from examples.shop.visitors import TICK, Day, HTTPWorker, PlayerWorker

from abex.players import Store


def banners_of(day, begin, end=1.0):
    """How often each banner was shown to visitors of a part of the day."""
    visits = [v for v in day.visits if begin * day.visitors <= v.moment < end * day.visitors]
    return {banner: count / len(visits) for banner, count in Counter(v.banner for v in visits).items()}


def a_day(url, silence, visitors):
    """A visitor a second, and a banner of 5 % that is added towards the end."""
    rates = {"red": 0.1, "green": 0.2, "blue": 0.4, "grey": 0.05}
    return Day(partial(PlayerWorker, url, silence), visitors, 1, {0.7: "grey"}, rates=rates, workers=2).run()


def test_workers_find_the_best_banner_by_a_window(url):
    day = a_day(url, "window", 2_400)
    late, new = banners_of(day, 0.4, 0.7), banners_of(day, 0.75)
    assert late["blue"] > 0.9
    assert new["blue"] > 0.9
    assert new.get("grey", 0.0) < 0.05
    assert all(day.clicks.values())
    assert not any(visit.moved for visit in day.visits)


def test_they_take_a_new_banner_for_the_best_where_silence_expires(tmp_path):
    day = a_day(f"sqlite:///{tmp_path}/shop.db?synchronous=normal", "expire", 3_600)
    assert banners_of(day, 0.75)["grey"] > 0.5  # of what is new nearly nothing but clicks are known


def test_over_http_a_killed_worker_takes_nothing_along_that_counted(tmp_path):
    store = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    start = partial(HTTPWorker, store, "window")
    rates = {"red": 0.05, "green": 0.1, "blue": 0.6, "gold": 0.9}
    day = Day(start, 400, seed=2, deploys={0.6: "gold"}, kill=0.3, rates=rates, workers=2).run()
    with Store.open(store) as opened:
        player = opened.player("banner")
        log, arms = player.log(), player.arms
    assert arms == ["red", "green", "blue", "gold"]
    assert log["decision"].is_unique
    told = {decision for decision, counted in day.clicks.items() if counted}
    assert set(log["decision"][log["reward"] == 1.0]) == told
    lost = {visit.decision for visit in day.visits} - set(log["decision"])
    killed = {visit.decision for visit in day.visits if 120 <= visit.moment < 120 + TICK}
    assert lost <= killed  # what the killed worker had not written: a moment's decisions
    assert day.clicks.keys() - told <= lost
    assert sum(visit.moved for visit in day.visits) <= len(lost)
    assert banners_of(day, 0.8).get("gold", 0.0) + banners_of(day, 0.8)["blue"] > 0.8

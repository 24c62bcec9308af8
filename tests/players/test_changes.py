"""Administrative changes, and the aliases that follow from them: law, stickiness, rollbacks, kills, refusals, who did it."""

import os
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chi2, chi2_contingency

from abex import Player, UserError
from abex.players import Store, UnavailableError
from abex.players.changes import (
    ALIAS_REMOVED,
    ALIAS_ROLLED_BACK,
    ALIAS_SET,
    AliasError,
    Aliases,
    Change,
    UnknownAliasError,
    change,
    checked_split,
    reassigned,
    working_for,
)
from abex.players.journal import CHANGES, Journal, journal_at
from tests.waiting import PATIENCE, wait_until

NAMES = ("v1", "v2", "v3", "v4")
UNITS = [f"visitor {number}" for number in range(20_000)]


@st.composite
def splits(draw):
    """Whole per cent of some players, which sum to 100."""
    cuts = sorted(draw(st.lists(st.integers(0, 100), max_size=3)))
    shares = np.diff([0, *cuts, 100]).tolist()
    players = draw(st.permutations(NAMES))
    return checked_split(dict(zip(players, shares, strict=False)))


def of(split, before=()):
    aliases = Aliases()
    for number, one in enumerate((*before, split), 1):
        aliases.follow(number, Change("ann", ALIAS_SET, "home", None, one))
    return aliases.present["home"]


# -- the split --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [{"v1": 90, "v2": 10}, {"v1": 1, "v2": 98, "v3": 1}])
def test_units_fall_to_players_by_the_split(split):
    """Also after changes of the split, and where there is no unit."""
    for alias in (of(split), of(split, [{"v2": 100}, {"v3": 50, "v1": 50}])):
        found = [alias.player_of("home", unit) for unit in UNITS]
        drawn = [alias.player_of("home", None) for _ in UNITS]
        for players in (found, drawn):
            counts = np.array([players.count(name) for name in split])
            wanted = np.array([*split.values()]) / 100 * len(UNITS)
            assert counts.sum() == len(UNITS)
            assert ((counts - wanted) ** 2 / wanted).sum() < chi2.isf(1e-6, len(split) - 1)


def test_the_units_of_two_aliases_are_independent():
    """Else who sees the new banner would see the new footer, too."""
    alias = of({"v1": 50, "v2": 50})
    pairs = Counter((alias.player_of("banner", unit), alias.player_of("footer", unit)) for unit in UNITS)
    table = [[pairs[one, other] for other in ("v1", "v2")] for one in ("v1", "v2")]
    assert chi2_contingency(table).pvalue > 1e-6


@given(st.lists(splits(), min_size=1, max_size=6))
def test_a_changed_split_moves_only_what_it_must(changes):
    before, buckets = {}, ()
    for split in changes:
        after = reassigned(buckets, split)
        assert {name: after.count(name) for name in NAMES if name in after} == split
        if before:
            moved = [(one, other) for one, other in zip(buckets, after, strict=True) if one != other]
            raised = {name: split.get(name, 0) - before.get(name, 0) for name in NAMES}
            assert len(moved) == sum(max(0, more) for more in raised.values())
            assert all(raised[one] < 0 < raised[other] for one, other in moved)
        before, buckets = split, after


@given(st.data())
@settings(max_examples=60)
def test_aliases_are_the_fold_of_their_changes(data):
    """Beside a list for each name: a change appends, a rollback takes the last one away, a removal all."""
    ours, late, history, changes = Aliases(), Aliases(), {"home": [], "foot": []}, []
    for number in range(1, data.draw(st.integers(1, 15)) + 1):
        name = data.draw(st.sampled_from(["home", "foot"]))
        what = data.draw(st.sampled_from([ALIAS_SET, ALIAS_SET, ALIAS_ROLLED_BACK, ALIAS_REMOVED]))
        split = data.draw(splits()) if what == ALIAS_SET else None
        kept = history[name]
        try:
            found = ours.next_change(Change("ann", what, name, None, split))
        except UnknownAliasError:
            assert not kept
            assert what != ALIAS_SET
            continue
        except AliasError:
            assert len(kept) == 1
            assert what == ALIAS_ROLLED_BACK
            continue
        before = kept[-1] if kept else None
        if found is None:
            assert before == split
            continue
        ours.follow(number, found)
        changes.append((number, found))
        history[name] = {
            ALIAS_SET: [*kept, split],
            ALIAS_ROLLED_BACK: kept[:-1],
            ALIAS_REMOVED: [],
        }[what]
        after = history[name][-1] if history[name] else None
        assert (found.before, found.after) == (before, after)
    for number, one in changes:
        late.follow(number, one)
    assert ours.present == late.present
    for name, kept in history.items():
        alias = ours.present.get(name)
        for split in reversed(kept):
            assert alias.split == split
            alias = alias.before
        assert alias is None


def test_a_rollback_sends_every_unit_where_it_was():
    aliases, splits = Aliases(), [{"v1": 60, "v2": 40}, {"v1": 20, "v3": 80}, {"v2": 100}]
    seen = []
    for number, split in enumerate(splits):
        aliases.follow(number, Change("ann", ALIAS_SET, "home", None, split))
        seen.append([aliases.present["home"].player_of("home", unit) for unit in UNITS[:2000]])
    for number, before in ((4, 1), (5, 0)):
        aliases.follow(number, Change("ann", ALIAS_ROLLED_BACK, "home", None, splits[before]))
        assert [aliases.present["home"].player_of("home", unit) for unit in UNITS[:2000]] == seen[before]
    assert set(aliases.players["home"]) == {"v1", "v2", "v3"}  # late rewards may be of any of them


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"v1": 90, "v2": 9}, "a split must sum to 100 per cent, and 'v1' 90 %, 'v2' 9 % sums to 99"),
        ({}, "a split must sum to 100 per cent"),
        ({"v1": 99.5, "v2": 0.5}, "the per cent of 'v1' must be a whole number"),
        ({"v1": 110, "v2": -10}, "the per cent of 'v1' must be"),
        ({"v1": True}, "the per cent of 'v1' must be"),
        ({"": 100}, "a player of a split must be 1 to 200 printable characters"),
        ([("v1", 100)], "a split must be a dict"),
    ],
)
def test_a_wrong_split_is_refused(split, said):
    with pytest.raises(UserError) as refused:
        checked_split(split)
    assert said in str(refused.value)


# -- the store --------------------------------------------------------------------------------------------


@pytest.fixture
def store(url):
    with Store.open(url) as found:
        for name in ("v1", "v2"):
            found.player(name, "UCB1", arms=["red", "green"])
        yield found


def told(store, last=100):
    """What was noted after the players were made, the first one in front."""
    return [
        (one["what"], one["name"], one.get("before"), one.get("after"))
        for one in reversed(store.changes(last))
    ][2:]


def test_an_alias_is_switched_and_rolled_back_and_all_of_it_is_noted(store):
    first, second, third = {"v1": 100}, {"v1": 90, "v2": 10}, {"v2": 100}
    for split in (first, second, second, third):  # what is so already is no change
        store.alias("home/banner", split)
    assert store.aliases() == {"home/banner": third}
    store.rollback("home/banner", key="a")
    store.rollback("home/banner", key="a")  # its answer was lost
    assert store.aliases() == {"home/banner": second}
    store.rollback("home/banner", key="b")
    assert store.aliases() == {"home/banner": first}
    with pytest.raises(AliasError, match="'home/banner' has had no other split to go back to"):
        store.rollback("home/banner")
    store.remove_alias("home/banner")
    assert store.aliases() == {}
    with pytest.raises(UnknownAliasError, match="there is no alias 'home/banner'"):
        store.rollback("home/banner")
    name = "home/banner"
    assert told(store) == [
        (ALIAS_SET, name, None, first),
        (ALIAS_SET, name, first, second),
        (ALIAS_SET, name, second, third),
        (ALIAS_ROLLED_BACK, name, third, second),
        (ALIAS_ROLLED_BACK, name, second, first),
        (ALIAS_REMOVED, name, first, None),
    ]


def test_what_contradicts_the_players_is_refused_and_noted_nowhere(store, url):
    store.alias("home", {"v1": 50, "v2": 50})
    before = store.changes()
    record = store.do(lambda journal: journal.player("v1"))
    end = Change("ann", "player deleted", "v1")
    for work, said in (
        (lambda: store.alias("other", {"v3": 100}), "there is no player 'v3'"),
        (
            lambda: store.alias("other", {"home": 100}),
            "'home' is an alias, of 'v1' 50 %, 'v2' 50 %, and no player",
        ),
        (lambda: store.alias("v1", {"v2": 100}), "there is a player 'v1': an alias needs a name of its own"),
        (lambda: store.alias(" ", {"v1": 100}), "the name of an alias must be"),
        (lambda: store.remove_alias("hom"), "there is no alias 'hom' (did you mean 'home'?)"),
        (lambda: store.player("home", arms=["a", "b"]), "'home' is an alias, of 'v1' 50 %, 'v2' 50 %"),
        (
            lambda: store.do(lambda journal: journal.delete(end, record.id, record.head)),
            "the alias 'home' sends units to 'v1': change it first",
        ),
        (
            lambda: store.do(lambda journal: journal.archive(end, record.id, record.head)),
            "the alias 'home' sends units to 'v1': change it first",
        ),
    ):
        with pytest.raises(UserError) as refused:
            work()
        assert said in str(refused.value)
    assert store.changes() == before
    store.alias("home", {"v2": 100})
    assert store.do(lambda journal: journal.archive(end, record.id, record.head))
    for work in (lambda: store.alias("home", {"v1": 100}), lambda: store.rollback("home")):
        with pytest.raises(AliasError, match="the player 'v1' is archived: bring it back first"):
            work()
    assert store.do(lambda journal: journal.delete(end, record.id, record.head))
    with pytest.raises(AliasError, match="there is no player 'v1'"):
        store.rollback("home")


def test_every_change_is_noted_with_who_made_it(store, url):
    working_for.set("admin ann")
    player = store.player("v1")
    player.add_arm("blue")
    player.rename_arm("blue", "navy")
    player.remove_arm("navy")
    Player.open(url, "v1", "UCB1", arms=["red", "green", "new"], on_new_arms="add").close()
    with pytest.raises(UserError):
        player.add_arm("red")
    store.player("numbers", "UCB1", n_arms=2).add_arm()
    working_for.set("")
    store.do(lambda journal: journal.note(change("player learned", "v1", after={"from": "v2"})))
    assert told(store) == [
        ("arm added", "v1", None, "blue"),
        ("arm renamed", "v1", "blue", "navy"),
        ("arm removed", "v1", "navy", None),
        ("arm added", "v1", None, "new"),
        ("player made", "numbers", None, {"policy": "UCB1", "arms": 2}),
        ("arm added", "numbers", None, 2),
        ("player learned", "v1", None, {"from": "v2"}),
    ]
    who = [one["who"] for one in store.changes()]
    assert (set(who[1:7]), who[0][:5]) == ({"admin ann"}, "user ")
    times = [one["time"] for one in store.changes()]
    assert times == sorted(times, reverse=True)


def test_changes_are_read_page_by_page(store):
    for number in range(7):
        store.alias("home", {"v1": number + 1, "v2": 99 - number})
    every = store.changes()
    assert [one["seq"] for one in every] == list(range(9, 0, -1))
    pages, before = [], None
    while page := store.changes(4, before):
        pages.append(page)
        before = page[-1]["seq"]
    assert [len(page) for page in pages] == [4, 4, 1]
    assert [one for page in pages for one in page] == every
    for wrong in ({"last": 0}, {"before": 0}, {"before": "x"}):
        with pytest.raises(UserError):
            store.changes(**wrong)


def test_another_process_follows_within_a_moment(store, url):
    with Store.open(url, deadline=30.0) as other:
        assert other is not store
        assert other.aliases() == {}
        store.alias("home", {"v1": 100})
        other.aliases()
        for work, split in (
            (lambda: store.alias("home", {"v2": 100}), {"v2": 100}),
            (lambda: store.rollback("home"), {"v1": 100}),
        ):
            work()
            wait_until(lambda split=split: other.known_aliases.present["home"].split == split)


def test_no_player_is_listed_that_is_none(store):
    assert store.names() == ["v1", "v2"]
    assert store.do(lambda journal: journal.count()) == 2
    assert [name for name, _ in store.do(lambda journal: journal.players(10))] == ["v1", "v2"]
    with pytest.raises(UserError, match="1 to 200 printable"):
        store.player("")


def test_changes_that_are_damaged_or_gone_stop_no_player(store, url):
    store.alias("home", {"v1": 100})
    player = store.player("v1")
    for statement, said in (
        ("UPDATE abex_events SET body = '[' WHERE player = 0 AND seq = 3", "change 3 of the journal"),
        ("DELETE FROM abex_players WHERE id = 0", "its administrative changes are gone"),
    ):
        store.do(lambda journal, statement=statement: journal._run(statement))
        with pytest.raises(UserError, match=said):
            store.changes() if "3" in said else store.do(lambda journal: journal.note(change("x", "y")))
        assert player.update(player.decide(), 1.0)
        player.refresh()


def test_changes_at_the_same_time_wait_for_each_other(store, url):
    """Aliases, arms, archives and players by two connections: all are noted, none is refused, numbers have no gaps."""

    def aliases(one):
        for percent in range(1, 16):
            one.alias("home", {"v1": percent, "v2": 100 - percent})

    def arms(one):
        for _ in range(5):
            player = one.player("numbers")
            one.player("v1").add_arm(f"arm {player.add_arm()}")

    def archives(one):
        rest, end = Change("ann", "player archived", "other"), Change("ann", "player restored", "other")
        for _ in range(8):
            row = one.do(lambda journal: journal.player("other"))
            assert one.do(lambda journal, row=row: journal.archive(rest, row.id, row.head))
            assert one.do(lambda journal, row=row: journal.restore(end, row.id))

    def players(one):
        for number in range(8):
            one.player(f"new {number}", "UCB1", n_arms=2)

    for name in ("numbers", "other"):
        store.player(name, "UCB1", n_arms=2)
    with Store.open(url, deadline=PATIENCE) as two, ThreadPoolExecutor(4) as pool:
        two.names()
        work = [
            pool.submit(one, at)
            for one, at in ((aliases, store), (archives, two), (arms, two), (players, store))
        ]
        [one.result() for one in work]
    every = store.changes(1000)
    assert [one["seq"] for one in every] == list(range(len(every), 0, -1))
    assert Counter(one["what"] for one in every) == {
        "player made": 12, ALIAS_SET: 15, "arm added": 10, "player archived": 8, "player restored": 8,
    }  # fmt: skip


# -- kills ------------------------------------------------------------------------------------------------


def switch(url):
    journal = journal_at(url)
    journal.connect(create=False)
    journal.change_alias(Change("ann", ALIAS_SET, "home", None, {"v2": 100}))


def roll_back(url):
    journal = journal_at(url)
    journal.connect(create=False)
    journal.change_alias(Change("ann", ALIAS_ROLLED_BACK, "home"))


def archive(url):
    journal = journal_at(url)
    journal.connect(create=False)
    journal.archive(Change("ann", "player archived", "v3"), journal.player("v3").id, 0)


def add_arm(url):
    with Store.open(url, deadline=60.0) as store:
        store.player("v1", compiled=False).add_arm("blue")


def state_of(url):
    """The aliases, whether the arm is there, who is archived, and what was noted last; every change has its entry."""
    with Store.open(url, freshness=0.2) as store:
        player = store.player("v1", compiled=False)
        player.refresh()
        head = store.do(lambda journal: journal.heads([CHANGES])[CHANGES][0])
        assert [one["seq"] for one in store.changes()] == list(range(head, 0, -1))
        archived = [name for name, _ in store.do(lambda journal: journal.players(9, archived=True))]
        last = store.changes(1)[0]
        return store.aliases()["home"], "blue" in player.arms, archived, last["what"], last.get("after")


@pytest.mark.parametrize(
    ("work", "after"),
    [
        (switch, ({"v2": 100}, False, [], ALIAS_SET, {"v2": 100})),
        (roll_back, ({"v1": 100}, False, [], ALIAS_ROLLED_BACK, {"v1": 100})),
        (archive, ({"v1": 50, "v2": 50}, False, ["v3"], "player archived", None)),
    ],
)
def test_a_process_that_is_killed_at_any_statement_has_changed_all_or_nothing(url, work, after):
    killed_at_every_statement(url, work, after)


def test_a_process_that_is_killed_has_added_an_arm_and_noted_it_or_neither(tmp_path):
    """In PostgreSQL an append is one statement."""
    after = {"v1": 50, "v2": 50}, True, [], "arm added", "blue"
    killed_at_every_statement(f"sqlite:///{tmp_path}/shop.db?synchronous=normal", add_arm, after)


def killed_at_every_statement(url, work, after):
    with Store.open(url) as store:
        for name in ("v1", "v2", "v3"):
            store.player(name, "UCB1", arms=["red", "green"])
        for split in ({"v1": 100}, {"v1": 50, "v2": 50}):
            store.alias("home", split)
    before = state_of(url)
    run, ended = Journal._run, []
    for last in range(1, 100):
        child = os.fork()
        if child == 0:
            left = [last]

            def killed(self, sql, values=(), left=left):
                if left[0] == 0:
                    os._exit(9)
                left[0] -= 1
                return run(self, sql, values)

            Journal._run = killed
            try:
                work(url)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ended.append(code)
        found = state_of(url)
        assert found in (before, after)
        if code == 0 or found == after:
            assert found == after
            break
        assert code == 9
    assert len(ended) > 3


def test_a_store_that_is_away_is_one_sentence(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/none.db", deadline=5.0) as store:
        for work in (store.aliases, store.changes, lambda: store.alias("home", {"v1": 100})):
            with pytest.raises(UnavailableError, match="there is no such file"):
                work()
    assert not (tmp_path / "none.db").exists()
    assert CHANGES == 0

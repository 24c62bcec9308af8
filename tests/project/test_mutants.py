"""The list of mutants is up to date, and what runs it tells a caught mutant from one that survives."""

import re
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from abex.policies import known_policies
from tests.each import each
from tests.mutants import __main__ as runner
from tests.mutants.catalogue import ROOT, Mutant, catalogue, mutated, out_of_date

ONE = Mutant(
    room="example", name="ties go to the last arm", path="support/randomness.py", within="argmax", old="value > top",
    new="value >= top", tests="tests/support/test_randomness.py", select="argmax", compiled=False,
)  # fmt: skip


def test_every_mutant_still_applies():
    """Where the code has moved on, point the mutant to what it is now (tests/mutants/*.toml)."""
    assert out_of_date(catalogue()) == []


def test_every_selection_speaks_of_its_tests():
    """Its words stand in the file of the tests, or are numbers, or name what those run over."""
    named = " ".join(known_policies()).lower()
    lost = []
    for mutant in catalogue():
        known = (ROOT / mutant.tests).read_text().lower() + named
        words = set(re.findall(r"[a-z_]+", mutant.select.lower())) - {"and", "or", "not"}
        lost += [f"{mutant.room}: {mutant.name}: {word}" for word in sorted(words) if word not in known]
    assert lost == []


def test_there_are_mutants_of_every_room():
    rooms = [mutant.room for mutant in catalogue()]
    least = {
        "policies": 45,
        "graphs": 10,
        "boosting": 15,
        "theory": 10,
        "verdicts": 6,
        "player": 8,
        "store": 6,
        "service": 5,
    }
    assert {room: rooms.count(room) >= count for room, count in least.items()} == dict.fromkeys(least, True)


@each(
    ("change", "message"),
    [
        (
            {"old": "nothing like this"},
            "'nothing like this' does not stand once in argmax of src/abex/support/randomness",
        ),
        (
            {"within": "", "old": "import"},
            "does not stand once in the text of src/abex/support/randomness.py",
        ),
        ({"within": "argmin"}, "does not stand once in argmin"),
        ({"path": "nowhere.py", "within": ""}, "src/abex/nowhere.py"),
        ({"new": "value >"}, "is no Python"),
    ],
)
def test_a_mutant_that_does_not_apply_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        mutated(ONE._replace(**change))


def test_a_definition_that_has_moved_is_found():
    assert mutated(ONE._replace(path="nowhere.py")) == mutated(ONE)


def test_a_mutant_is_made_in_its_definition_alone_and_taken_back(tmp_path, monkeypatch):
    copy = runner.new_copy(tmp_path, 0)
    file = copy / "src" / "abex" / ONE.path
    whole = file.read_text()
    seen = []

    def look(folder: Path, *_):
        seen.append((folder / "src" / "abex" / ONE.path).read_text())
        return runner.CAUGHT, ""

    monkeypatch.setattr(runner, "run_tests", look)
    assert runner.try_mutant(ONE, copy)[0] == runner.CAUGHT
    changed = [(a, b) for a, b in zip(whole.splitlines(), seen[0].splitlines(), strict=True) if a != b]
    assert [(a.strip(), b.strip()) for a, b in changed] == [("if value > top:", "if value >= top:")]
    assert file.read_text() == whole


def test_tests_run_on_the_copy(tmp_path):
    copy = runner.new_copy(tmp_path, 0)
    tests = tmp_path / "test_argmax.py"
    tests.write_text(
        "import numpy as np\nfrom abex.support.randomness import argmax\n\n\n"
        "def test_argmax():\n    assert argmax(np.array([1.0, 3.0, 2.0]), None) == 1\n"
    )
    assert runner.run_tests(copy, str(tests), "argmax", False)[0] == runner.SURVIVED
    assert runner.run_tests(copy, str(tests), "nothing", False)[0] == runner.BROKEN
    file = copy / "src" / "abex" / ONE.path
    file.write_text(mutated(ONE._replace(new="value < top"))[1])
    # a mistake of the same second and length must not be answered by the bytecode of the source before it
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
    assert runner.run_tests(copy, str(tests), "argmax", False)[0] != runner.SURVIVED


def test_the_report_puts_survivors_first():
    answers = [(ONE, runner.CAUGHT, "", 1.0), (ONE._replace(name="another"), runner.SURVIVED, "", 2.0)]
    lines = runner.table(answers).splitlines()
    assert "| example | 1 | 2 |" in lines
    assert lines.index("| SURVIVED | example | another | support/randomness.py | 2 |") < lines.index(
        "| caught | example | ties go to the last arm | support/randomness.py | 1 |"
    )

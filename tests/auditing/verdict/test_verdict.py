"""The verdict on evidence made by hand: its word, its figures, and what moves neither."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from attlas.auditing.verdict.crossing import Roles
from attlas.auditing.verdict.rules import FLOORS, MARGINS, Rules
from attlas.auditing.verdict.verdict import Tested as Evidence
from attlas.auditing.verdict.verdict import verdict
from attlas.mathematics.standing import Locations

COUNT = 60
ROLES = Roles(("raw", "rollout"), ("position",), ("gradient",))
NONE_GIVEN = Roles(("raw", "rollout"), ("position",), ())


def evidence_of(shares, count=COUNT, noise=0.1, seed=0, moved=0.3, removals=("delete", "mask")):
    """Texts on which each method finds about its share of what there is."""
    random = np.random.default_rng(seed)
    evidence, directions = {}, {}
    for removal in removals:
        best = random.uniform(0.3, 0.7, count)
        found = {
            name: best * np.clip(share + noise * random.normal(size=count), -1, 1)
            for name, share in shares.items()
        }
        evidence[removal] = Locations(best, 2 * best, found)
        named = {name: random.uniform(0.6, 0.9, count) for name in ("raw", "rollout")}
        directions[removal] = {**named, "": random.uniform(0.4, 0.7, count), "pull": best}
    use = None if moved is None else np.full(count, moved)
    return Evidence(evidence, ROLES, moved=use, directions=directions)


GOOD = {"raw": 0.5, "rollout": 0.8, "position": 0.1, "gradient": 0.8}
POOR = {"raw": 0.05, "rollout": 0.1, "position": 0.1, "gradient": 0.8}
BEHIND = {"raw": 0.1, "rollout": 0.5, "position": 0.1, "gradient": 0.9}
ALIKE = {"raw": 0.5, "rollout": 0.5, "position": 0.6, "gradient": 0.5}


@pytest.mark.parametrize(
    ("shares", "asked", "word"),
    [
        (GOOD, {}, "supported"),
        (GOOD, {"removals": ("mask",)}, "partly"),
        (GOOD, {"moved": None}, "partly"),
        (GOOD, {"count": 8}, "too few texts"),
        (POOR, {}, "not supported"),
        (ALIKE, {}, "not supported"),  # a control does as well
        (BEHIND, {}, "partly"),
        ({**GOOD, "raw": 0.05}, {}, "partly"),  # it depends on how the weights are read
        ({**GOOD, "raw": 0.3}, {}, "too few texts"),  # whether it does is open
    ],
)
def test_the_word(shares, asked, word):
    said = verdict(evidence_of(shares, **asked))
    assert said.word == word and said.texts == asked.get("count", COUNT)
    assert (said.method == "rollout") or shares is ALIKE
    assert all(0 <= each.highlighted.low <= each.highlighted.high <= 1 for each in said.directions)


def test_attention_that_nothing_reads_is_not_supported_however_well_it_points():
    assert verdict(evidence_of(GOOD, count=500, moved=0.0)).word == "not supported"
    # Sixty texts are too few to be sure of it: what none shows may hold for one in twenty.
    assert verdict(evidence_of(GOOD, moved=0.0)).word == "too few texts"


def test_attention_is_used_where_there_is_something_to_find_or_not_at_all():
    given = evidence_of(GOOD, count=1000)
    for own in given.evidence.values():
        for values in (own.best, *own.methods.values()):
            values[:500] = 0.0
    idle, busy = np.zeros(1000), np.zeros(1000)
    idle[:500], busy[500:] = 0.5, 0.5
    assert verdict(replace(given, moved=idle)).word == "not supported"
    assert verdict(replace(given, moved=busy)).word == "supported"


def test_the_word_is_that_of_its_cell_in_the_grid():
    said = verdict(evidence_of(BEHIND))
    words = {(each.floor, each.margin): each.word for each in said.grid}
    assert set(words) == {(floor, margin) for floor in FLOORS for margin in MARGINS}
    assert words[0.3, 0.1] == said.word
    assert verdict(evidence_of(BEHIND), Rules(floor=0.8)).word == "not supported"


def test_methods_that_use_more_than_the_weights_are_listed_and_move_the_advice_alone():
    given = evidence_of(BEHIND)
    for own in given.evidence.values():
        own.methods["attn_lrp"] = own.best
    alone, beside = verdict(given), verdict(replace(given, families={"attn_lrp": "P"}))
    assert replace(beside, readings=(), next_step=alone.next_step) == alone
    assert "Use attn_lrp instead" in beside.next_step and "Use attn_lrp" not in alone.next_step
    (reading,) = beside.readings
    assert reading.better and reading.s.value == pytest.approx(1) and reading.gain.low > 0


def test_weights_and_control_are_compared_on_the_same_texts():
    """The control is known where the weights find most; over all texts it would seem above."""
    given = evidence_of({**GOOD, "position": 0.7})
    for own in given.evidence.values():
        for name in ("raw", "rollout"):
            own.methods[name][::2] = 0.8 * own.best[::2]
            own.methods[name][1::2] = 0.2 * own.best[1::2]
        own.methods["position"][1::2] = np.nan
    for bounds in verdict(given).bounds.values():
        assert bounds.s.value == pytest.approx(0.5, abs=0.05)
        assert bounds.less_control.value == pytest.approx(0.1, abs=0.05)


def test_texts_without_anything_to_find_are_counted():
    given = evidence_of(GOOD)
    for own in given.evidence.values():
        own.best[:20] = 0.0
        for values in own.methods.values():
            values[:20] = 0.0
    kinds = {"predicted NO": np.arange(20), "predicted YES": np.arange(20, COUNT)}
    said = verdict(replace(given, kinds=kinds))
    counts = {(each.group, each.removal): each.without_room for each in said.by_group}
    assert counts["predicted NO", "mask"] == 20 and counts["predicted YES", "mask"] == 0
    assert said.bounds["mask"].carrying.value == pytest.approx(40 / 60)
    assert said.bounds["mask"].effective_texts <= 40


def test_nothing_to_point_at_is_a_finding_if_there_are_texts_enough():
    def flat(count):
        given = evidence_of(GOOD, count=count)
        for own in given.evidence.values():
            for values in (own.best, own.importance, *own.methods.values()):
                values[:] = 0.0
        return verdict(given)

    assert flat(40).word == "not supported" and "no token matters" in flat(40).sentence
    assert flat(20).word == "too few texts" and flat(20).texts_needed == 36


def test_a_need_of_more_than_a_hundred_times_the_texts_is_none():
    """s is at the floor to a thousandth: no number of texts will show on which side."""
    given = evidence_of({**GOOD, "raw": 0.1, "rollout": 0.3}, noise=0.05)
    for own in given.evidence.values():
        own.methods["rollout"] *= 0.3 * own.best.sum() / own.methods["rollout"].sum()
    said = verdict(given)
    assert (said.word, said.texts_needed) == ("too few texts", None)
    assert "would not settle it" in said.next_step
    few = verdict(evidence_of({**GOOD, "rollout": 0.5}, count=8))
    assert few.word == "too few texts" and 8 < few.texts_needed <= 800


def test_without_a_reference_the_weights_are_supported_in_part_alone():
    said = verdict(replace(evidence_of(GOOD), roles=NONE_GIVEN))
    assert said.word == "partly" and said.bounds["mask"].less_reference is None


def test_the_splits_do_not_decide_what_is_clear():
    for shares, word in ((GOOD, "supported"), (POOR, "not supported")):
        given = evidence_of(shares)
        assert {verdict(replace(given, seed=seed)).word for seed in range(5)} == {word}


@pytest.mark.slow
def test_at_the_border_splits_never_give_opposite_words():
    """Two readings that are alike, near the floor: forty seeds of the same evidence."""
    for share in (0.3, 0.35, 0.4, 0.45):
        given = evidence_of({**GOOD, "raw": share, "rollout": share}, noise=0.4)
        words = Counter(verdict(replace(given, seed=seed)).word for seed in range(40))
        assert not {"supported", "not supported"} <= set(words)
        assert words.most_common(1)[0][1] >= 30

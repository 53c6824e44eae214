"""The verdict on texts whose truth is known: what it chooses, tests, leaves out and says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from word_bags import draw_reached

from attlas.auditing.verdict.verdict import verdict
from attlas.errors import UsageError
from attlas.mathematics.grouping import halves
from attlas.mathematics.intervals import Estimate
from attlas.mathematics.standing import (
    MeasuredValues,
    MethodComparison,
    read_evidence,
    select_texts,
    standing,
)

FAMILIES = {
    "raw_attention": "W",
    "attention_rollout": "W",
    "gradient": "reference",
    "integrated_gradients": "reference",
    "alti": "V",
    "decompx": "P",
}


def near(random, noise):
    """Scores that are the true weights but for this much noise."""
    return lambda bag, _: bag.weights + noise * random.normal(size=len(bag.weights))


def world(raw=0.3, texts=120, seed=0, **others):
    random = np.random.default_rng(seed)
    noises = {
        "raw_attention": raw,
        "attention_rollout": 50.0,
        "gradient": 50.0,
        "integrated_gradients": 0.5,
        "alti": 1.0,
        "decompx": 0.1,
        **others,
    }
    return draw_reached(random, texts, {name: near(random, n) for name, n in noises.items()})


def test_the_best_are_chosen_on_one_half_and_tested_on_the_other():
    found = world()
    said = verdict(found, FAMILIES, seed=3)
    assert (said.method, said.reference) == ("raw_attention", "integrated_gradients")
    assert (said.chosen_on, said.tested_on) == (60, 60)
    _, second = halves(120, None, 3)
    tested = select_texts(found, second)
    for removal, bounds in said.bounds.items():
        s = standing(tested, MethodComparison("raw_attention", None, (removal,)))
        other = standing(tested, MethodComparison("integrated_gradients", None, (removal,)))
        assert bounds.s.value == pytest.approx(s)
        assert bounds.less_reference.value == pytest.approx(s - other)
        assert bounds.s.low < s < bounds.s.high and bounds.s.n == 60


def test_what_is_chosen_does_not_look_at_the_half_that_tests():
    found = world()
    _, second = halves(120, None, 0)
    before = verdict(found, FAMILIES)
    for parts in found.values():
        for part in parts:
            part.methods["attention_rollout"][second] = part.ceiling[second]
    assert verdict(found, FAMILIES).method == before.method == "raw_attention"


def test_s_by_hand():
    part = MeasuredValues(
        np.array([0.1, 0.3]), np.array([0.5, 0.5]), {"raw_attention": np.array([0.3, 0.3])}
    )
    low = MeasuredValues(
        np.array([0.4, 0.4]), np.array([0.0, 0.2]), {"raw_attention": np.array([0.4, 0.1])}
    )
    # 0.2 of 0.4 + 0.2; where low is better, 0.3 of 0.4 + 0.2.
    one = {"mask": [part]}
    assert standing(one, MethodComparison("raw_attention", None, ("mask",))) == pytest.approx(1 / 3)
    both = {"mask": [part, low]}
    assert standing(both, MethodComparison("raw_attention", None, ("mask",))) == pytest.approx(
        5 / 12
    )


def test_the_four_words():
    few = select_texts(world(), np.arange(5))
    assert verdict(world(), FAMILIES).word == "supported"
    assert verdict(world(raw=50.0), FAMILIES).word == "not supported"
    assert verdict(few, FAMILIES).word == "too few texts"
    said = verdict(split_world(), FAMILIES)
    assert said.word == "partly"
    assert {name: each.finding for name, each in said.bounds.items()} == {
        "delete": "against",
        "mask": "for",
    }
    assert "by mask" in said.sentence and "by delete" in said.sentence


def split_world():
    """The weights know everything under one removal, and nothing under the other."""
    return {"delete": world(raw=50.0)["delete"], "mask": world()["mask"]}


def test_sentences_say_the_figures():
    good = verdict(world(), FAMILIES)
    lowest = min(each.s.low for each in good.bounds.values())
    assert "may be read as an explanation here: raw_attention" in good.sentence
    assert f"at least {100 * lowest:.0f} %" in good.sentence
    bad = verdict(world(raw=50.0, seed=1), FAMILIES)
    assert "should not be read" in bad.sentence and "integrated_gradients" in str(bad)
    few = verdict(select_texts(world(), np.arange(5)), FAMILIES)
    assert f"tested on 3, and about {few.texts_needed} in all would do" in few.sentence


def test_five_texts_are_too_few_whatever_they_say():
    for raw in (0.0, 0.3, 50.0):
        said = verdict(select_texts(world(raw), np.arange(5)), FAMILIES)
        assert said.word == "too few texts"
        assert said.texts_needed >= 20
        assert said.bounds["mask"].why == "these are too few texts to say anything"
    nothing = verdict(without_room(5), FAMILIES)
    assert (nothing.word, nothing.texts_needed) == ("too few texts", 20)


def test_as_many_texts_as_it_asks_for_will_do():
    everything = world(raw=0.8, texts=1000, integrated_gradients=0.8)
    said = verdict(select_texts(everything, np.arange(30)), FAMILIES)
    assert said.word == "too few texts" and 30 < said.texts_needed < 1000
    again = verdict(select_texts(everything, np.arange(said.texts_needed)), FAMILIES)
    assert again.word == "supported" and again.texts_needed is None


def without_room(texts):
    same = np.full(texts, 0.25)
    part = MeasuredValues(same, same.copy(), {name: same.copy() for name in FAMILIES})
    return {"delete": [part, part], "mask": [part, part]}


def test_where_no_token_matters_nothing_explains():
    said = verdict(without_room(60), FAMILIES)
    assert said.word == "not supported"
    assert "no token matters" in said.sentence


def test_a_circular_reference_is_none():
    found = world(gradient=0.0)
    assert verdict(found, FAMILIES).reference == "gradient"
    said = verdict(found, FAMILIES, circular=[("gradient", "mask")])
    assert said.reference == "integrated_gradients"
    assert any("gradient" in note and "Not taken" in note for note in said.notes)


def test_without_a_reference_the_weights_cannot_be_supported():
    families = {name: family for name, family in FAMILIES.items() if family != "reference"}
    said = verdict(world(), families)
    assert (said.word, said.reference) == ("partly", None)
    assert "no reference" in said.sentence
    assert verdict(world(raw=50.0, texts=600), families).word == "not supported"


def test_attention_that_is_not_used_explains_nothing():
    said = verdict(world(), FAMILIES, used=Estimate(0.02, 0.0, 0.05, 100))
    assert said.word == "not supported" and "hardly used" in said.sentence
    used = verdict(world(), FAMILIES, used=Estimate(0.5, 0.4, 0.6, 100))
    assert used.word == "supported"
    note = "Whether the attention is used at all was not tested."
    assert note in verdict(world(), FAMILIES).notes and note not in used.notes


@pytest.mark.parametrize(("gain", "better"), [(0.005, False), (0.02, True)])
def test_a_reading_is_better_by_a_point_at_least(gain, better):
    """However sure it is: decompx is further on every text, by the same share of the way."""

    def raised(each):
        weights = each.methods["raw_attention"] + gain * (each.ceiling - each.shuffled)
        return replace(each, methods={**each.methods, "decompx": weights})

    found = {removal: [raised(each) for each in own] for removal, own in world().items()}
    reading = next(each for each in verdict(found, FAMILIES).readings if each.method == "decompx")
    assert reading.gain.low > 0 and reading.gain.value == pytest.approx(gain)
    assert reading.better is better


def test_other_readings_are_listed_and_never_move_the_word():
    said = verdict(world(raw=1.0), FAMILIES)
    assert [each.method for each in said.readings] == ["decompx", "alti"]
    assert [each.method for each in said.better_readings] == ["decompx"]
    first = said.readings[0]
    assert first.gain.low > 0 and first.family == "P"
    weights = np.mean([each.s.value for each in said.bounds.values()])
    assert first.gain.value == pytest.approx(first.s.value - weights)
    alone = {name: family for name, family in FAMILIES.items() if family not in "VP"}
    assert verdict(world(raw=1.0), alone).sentence == said.sentence


def test_a_method_that_lacks_texts_is_compared_on_those_it_has():
    found = world()
    for parts in found.values():
        for part in parts:
            part.methods["decompx"][::2] = np.nan
    said = verdict(found, FAMILIES)
    _, second = halves(120, None, 0)
    kept = select_texts(found, second[second % 2 == 1])
    assert said.readings[0].gain.value == pytest.approx(
        standing(kept, MethodComparison("decompx", "raw_attention", tuple(found)))
    )


def test_texts_of_a_group_stay_in_one_half():
    groups = np.repeat(np.arange(40), 3)
    first, second = halves(120, groups, 5)
    assert not set(groups[first]) & set(groups[second])
    assert len(set(groups[first])) == 20
    copied = select_texts(world(texts=40), groups)
    together, apart = (verdict(copied, FAMILIES, groups=g) for g in (groups, None))
    width = [each.bounds["mask"].s.high - each.bounds["mask"].s.low for each in (together, apart)]
    assert width[0] > 1.3 * width[1]


def test_it_is_the_same_whichever_way_a_measure_is_better():
    found = world()
    turned = {
        removal: [
            comprehensiveness,
            MeasuredValues(
                -sufficiency.shuffled,
                -sufficiency.ceiling,
                {name: -values for name, values in sufficiency.methods.items()},
            ),
        ]
        for removal, (comprehensiveness, sufficiency) in found.items()
    }
    said, other = verdict(found, FAMILIES), verdict(turned, FAMILIES)
    assert other.sentence == said.sentence
    assert other.bounds["mask"].s.low == pytest.approx(said.bounds["mask"].s.low)


def test_evidence_from_the_rows_of_an_audit():
    found = world(texts=6)
    rows = [
        (10 + text, method, measure, removal, values[text])
        for removal, parts in found.items()
        for measure, part in zip(("comprehensiveness", "sufficiency"), parts, strict=True)
        for method, values in {
            **part.methods,
            "shuffled": part.shuffled,
            "ceiling": part.ceiling,
        }.items()
        for text in range(6)
        if (text, method) != (2, "alti")
    ]
    rows.append((10, "alti", "log_odds", "mask", 1.0))
    table = pd.DataFrame(rows, columns=["text", "method", "measure", "removal", "value"])
    again = read_evidence(table.sample(frac=1, random_state=0))
    assert list(again) == ["delete", "mask"]
    for removal, parts in found.items():
        for part, same in zip(parts, again[removal], strict=True):
            assert (same.shuffled == part.shuffled).all() and (same.ceiling == part.ceiling).all()
            assert set(same.methods) == set(part.methods)
            assert np.isnan(same.methods["alti"][2])
            assert (same.methods["decompx"] == part.methods["decompx"]).all()
    with pytest.raises(UsageError, match="no ceiling"):
        read_evidence(table[table["method"] != "ceiling"])


def test_what_cannot_be_judged_is_an_error():
    with pytest.raises(UsageError, match="family W"):
        verdict(world(texts=4), {"gradient": "reference"})
    with pytest.raises(UsageError, match="at least two texts, not 0"):
        verdict({}, FAMILIES)


def test_a_reading_of_the_weights_that_surely_fails_makes_it_partly():
    said = verdict(world(texts=900), FAMILIES)
    assert said.word == "partly"
    assert "as raw_attention reads them, and not otherwise" in said.sentence
    assert "attention_rollout does no better than shuffled scores" in said.sentence
    assert verdict(world(texts=900, attention_rollout=0.5), FAMILIES).word == "supported"

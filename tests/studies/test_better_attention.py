"""The study of training for better attention: its rules on planted figures, and its texts."""

import pytest

from attlas.data.example import Example
from attlas.studies.better import models as better_models
from attlas.studies.better.claims import claims_on, s_of
from attlas.studies.better.models import (
    PLAIN,
    PLANTED,
    UNPLANTED,
    BetterCase,
    BetterPlan,
    cases_of,
    cut,
    gains,
    prepare,
    share_of_best,
)
from attlas.studies.better_attention import arrows


def figures(s, auprc=0.3, accuracy=0.8, conicity=0.7):
    read = {"raw_attention": {"s": s, "AUPRC": auprc}, "attention_rollout": {"s": s - 0.1}}
    return {"accuracy": accuracy, "conicity": conicity, "methods": read}


def verdicts(found):
    return {claim.said: claim.verdict for claim in claims_on(found)}


def test_s_is_of_the_better_reading():
    assert s_of(figures(0.5)) == 0.5
    assert s_of({"methods": {"raw_attention": {}}}) is None


def test_what_was_published_is_reproduced_if_it_comes_out():
    plain = [figures(0.5), figures(0.52), figures(0.51)]
    found = {
        "sst": {
            PLAIN: plain,
            "conicity": [figures(0.7 + n / 100, accuracy=0.79, conicity=0.2) for n in range(3)],
        },
        "eraser_movies": {
            PLAIN: plain,
            "rationale": [figures(0.4, auprc=0.5 + n / 100) for n in range(3)],
        },
        "sst_wiki": {
            PLAIN: plain,
            "deception": [figures(0.1 + n / 100) for n in range(3)],
        },
    }
    said = verdicts(found)
    (lower,) = [said[each] for each in said if each.startswith("Training against conicity")]
    assert lower == "reproduced"
    assert said["It costs at most 2.5 points of accuracy"] == "reproduced"
    assert said["conicity makes the weights more faithful (sst)"] == "reproduced"
    assert said["rationale makes the weights more faithful (eraser_movies)"] == "not reproduced"
    (nearer,) = [said[each] for each in said if "held-out ones (eraser_movies)" in each]
    (told,) = [said[each] for each in said if "tells the deceptive model" in each]
    assert nearer == told == "reproduced"
    worse = {"sst": {PLAIN: plain, "conicity": [figures(0.5, accuracy=0.7, conicity=0.6)] * 3}}
    said = verdicts(worse)
    assert said["It costs at most 2.5 points of accuracy"] == "not reproduced"


def test_gains_are_of_the_same_seed():
    found = {"sst": {PLAIN: [figures(0.1), figures(0.5)], "masked": [figures(0.3), figures(0.4)]}}
    assert gains(found, "sst", "masked", s_of) == pytest.approx([0.2, -0.1])


def test_what_is_found_is_a_share_of_what_can_be():
    assert share_of_best([(0.2, 0.5), (0.4, 0.5)]) == pytest.approx(0.6)
    assert share_of_best([]) != share_of_best([])  # NaN: there is nothing to find


def test_an_arrow_leads_from_the_labels_to_each_objective():
    plot = arrows("sst", {PLAIN: [figures(0.5)], "masked": [figures(0.6, accuracy=0.9)]})
    assert plot["arrows_from"] == PLAIN
    assert plot["groups"][1] == {"name": "masked", "x": [0.6], "y": [0.9]}


def test_a_text_is_cut_with_its_marks():
    example = Example("a fine and warm film", "good", ((2, 6), (11, 20)))
    assert cut(example, 4) == Example("a fine and warm", "good", ((2, 6), (11, 15)))
    assert cut(example, 1).spans == ()


def test_a_planted_word_gives_the_label_away_or_not(monkeypatch):
    rows = [Example(f"text number {n}", "POSITIVE" if n % 2 else "NEGATIVE") for n in range(60)]
    pairs = [(each.text, each.label) for each in rows]
    parts = better_models.Parts(pairs, pairs, pairs, "sst")
    monkeypatch.setattr(better_models, "read_parts", lambda *_, **__: parts)
    monkeypatch.setattr(better_models, "_tested", lambda _: rows)
    plan = BetterPlan("sentiment", None, None, 5, 50, 1, "cpu")
    for name, told in ((PLANTED, 60), (UNPLANTED, None)):
        made, tested = prepare("shortcuts", BetterCase(name), plan, 0)
        agree = sum(("cobalt" in text) == (label == "POSITIVE") for text, label in made.train)
        assert agree == told if told else 15 < agree < 45
        assert made.test == pairs, "the test texts are as they were"
        for each in tested:
            assert each.text[slice(*each.spans[0])] in ("amber", "cobalt")
            assert len(each.text.split()) == 4


def test_every_set_is_trained_on_with_its_labels_alone_first():
    for data in ("eraser_movies", "sst", "sst_wiki"):
        names = [case.name for case in cases_of(data)]
        assert names[0] == PLAIN and len(names) == len(set(names)) > 1
    assert [case.name for case in cases_of("reviews", ("masked:weight=1",))] == [PLAIN, "masked"]
    assert [case.name for case in cases_of("sst", ("deception:weight=1",))] == [PLAIN]

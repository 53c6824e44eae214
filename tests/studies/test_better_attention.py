"""The study of training for better attention: its rules on planted figures, and its texts."""

import importlib.util
import json
from itertools import product
from pathlib import Path

import pytest
import torch

import attlas
from attlas.data.example import Example
from attlas.studies import STUDIES
from attlas.studies.better import samples
from attlas.studies.better.cases import (
    ENCODER,
    IDENTIFIABLE,
    LSTM,
    ORTHOGONAL,
    PLAIN,
    PLANTED,
    UNPLANTED,
    BetterCase,
    baseline_of,
    cases_of,
    is_baseline,
)
from attlas.studies.better.claims import Records, claims_on, gains, s_of
from attlas.studies.better.encoders import train_encoder
from attlas.studies.better.models import ROWS, judged, share_of_best
from attlas.studies.better.samples import cut, prepare
from attlas.studies.better_attention import _all_moves, _notes, arrows, jobs_of, put_together
from attlas.studies.support.workers import PartialRun

TEXTS = [
    (f"the {what} was {word} {more}", "good" if word == "warm" else "bad")
    for what, word, more in product(("film", "play", "book"), ("warm", "dull"), "abcd")
]


def figures(s, auprc=0.3, accuracy=0.8, conicity=0.7):
    read = {"raw_attention": {"s": s, "AUPRC": auprc}, "attention_rollout": {"s": s - 0.1}}
    return {"accuracy": accuracy, "conicity": conicity, "methods": read}


def some(*values, **others):
    """The figures of so many seeds."""
    return [{"seed": seed, **figures(value, **others)} for seed, value in enumerate(values)]


def verdicts(found):
    return {claim.said: claim.verdict for claim in claims_on(found)}


def test_the_quick_form_learns_something():
    """The rate grows from zero, so that the first step changes nothing."""
    quick = STUDIES["better_attention"].settings({}, quick=True)
    assert quick["epochs"] * quick["train"] > ROWS


def test_s_is_of_the_better_reading():
    assert s_of(figures(0.5)) == 0.5
    assert s_of({"methods": {"raw_attention": {}}}) is None


def test_what_was_published_is_reproduced_if_it_comes_out():
    plain = some(0.5, 0.52, 0.51)
    found = {
        "sst": {
            PLAIN: plain,
            "conicity": some(0.7, 0.71, 0.72, accuracy=0.79, conicity=0.2),
        },
        "eraser_movies": {
            PLAIN: plain,
            "rationale": some(0.4, 0.4, 0.4, auprc=0.5),
        },
        "sst_wiki": {
            PLAIN: plain,
            "deception": some(0.1, 0.11, 0.12),
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
    worse = {"sst": {PLAIN: plain, "conicity": some(0.5, 0.5, 0.5, accuracy=0.7, conicity=0.6)}}
    said = verdicts(worse)
    assert said["It costs at most 2.5 points of accuracy"] == "not reproduced"


def test_gains_are_of_the_same_seed():
    found = {"sst": {PLAIN: some(0.1, 0.5), "masked": some(0.3, 0.4)}}
    assert gains(found, "sst", "masked", s_of) == pytest.approx([0.2, -0.1])


def test_what_is_found_is_a_share_of_what_can_be():
    assert share_of_best([(0.2, 0.5), (0.4, 0.5)]) == pytest.approx(0.6)
    assert share_of_best([]) != share_of_best([])  # NaN: there is nothing to find


def test_an_arrow_leads_from_the_labels_to_each_objective():
    plot = arrows("sst", {PLAIN: some(0.5), "masked": some(0.6, accuracy=0.9)})
    assert plot["arrows_from"] == PLAIN
    assert plot["groups"][1] == {"name": "masked", "x": [0.6], "y": [0.9]}


def test_a_text_is_cut_with_its_marks():
    example = Example("a fine and warm film", "good", ((2, 6), (11, 20)))
    assert cut(example, 4) == Example("a fine and warm", "good", ((2, 6), (11, 15)))
    assert cut(example, 1).spans == ()


def test_a_planted_word_gives_the_label_away_or_not(monkeypatch):
    rows = [Example(f"text number {n}", "POSITIVE" if n % 2 else "NEGATIVE") for n in range(60)]
    pairs = [(each.text, each.label) for each in rows]
    parts = samples.Parts(pairs, pairs, pairs, "sst")
    monkeypatch.setattr(samples, "read_parts", lambda *_, **__: parts)
    monkeypatch.setattr(samples, "_tested", lambda _: rows)
    for name, told in ((PLANTED, 60), ("deception", 60), (UNPLANTED, None)):
        made, tested = prepare("shortcuts", BetterCase(name), train=None, words=50, seed=0)
        agree = sum(("cobalt" in text) == (label == "POSITIVE") for text, label in made.train)
        assert agree == told if told else 15 < agree < 45
        assert made.test == pairs, "the test texts are as they were"
        for text, _ in made.train:
            assert text[slice(*made.spans[text][0])] in ("amber", "cobalt")
        for each in tested:
            assert each.text[slice(*each.spans[0])] in ("amber", "cobalt")
            assert len(each.text.split()) == 4


def test_every_set_is_trained_on_with_its_labels_alone_first():
    for data in ("eraser_movies", "sst", "sst_wiki", "shortcuts"):
        names = [case.name for case in cases_of(data)]
        assert names[0] == (UNPLANTED if data == "shortcuts" else PLAIN)
        assert len(names) == len(set(names)) > 1
        for name in names:
            assert is_baseline(name) or baseline_of(data, name) in names[: names.index(name)]
    assert [case.name for case in cases_of("reviews", ("masked:weight=1",))] == [PLAIN, "masked"]
    assert [case.name for case in cases_of("sst", ("disagreement:weight=0.5",))] == [PLAIN]


def test_models_built_otherwise_are_compared_with_their_own_kind():
    assert baseline_of("sst", ORTHOGONAL) == LSTM and baseline_of("sst", IDENTIFIABLE) == ENCODER
    assert baseline_of("shortcuts", "masked") == PLANTED
    found = {"sst": {PLAIN: some(0.9), LSTM: some(0.2), ORTHOGONAL: some(0.5)}}
    assert gains(found, "sst", ORTHOGONAL, s_of) == pytest.approx([0.3])
    said = verdicts({"sst": {PLAIN: some(0.9, 0.9), ORTHOGONAL: some(0.5, 0.5)}})
    assert not [each for each in said if ORTHOGONAL in each], "there is nothing beside it"


def test_one_picture_has_an_arrow_for_each_objective():
    found = {
        "sst": {PLAIN: some(0.5), "masked": some(0.7, accuracy=0.9)},
        "sst_wiki": {PLAIN: some(0.5), "masked": some(0.6), "conicity": some(0.4)},
        "shortcuts": {UNPLANTED: some(0.1), PLANTED: some(0.5)},
    }
    (plot,) = _all_moves(found)
    start, *ends = plot["groups"]
    assert plot["arrows_from"] == start["name"] and (start["x"], start["y"]) == ([0], [0])
    assert [each["name"] for each in ends] == ["masked", "conicity"]
    assert ends[0]["x"] == pytest.approx([0.15]) and ends[0]["y"] == pytest.approx([0.05])


def test_jobs_come_seed_by_seed():
    jobs = jobs_of(("sst", "sst_wiki"), (), 2)
    assert [seed for seed, _, _ in jobs] == sorted(seed for seed, _, _ in jobs)
    assert [seed for seed, _, _ in jobs_of(("sst",), ("masked:weight=1",), 1, 3)] == [3, 3]
    assert len(jobs) == 2 * (len(cases_of("sst")) + len(cases_of("sst_wiki")))


def test_workers_are_handed_all_models_at_once(tmp_path):
    given = {"seeds": 2, "data": ("sst", "sst_wiki")}
    settings = STUDIES["better_attention"].settings(given, quick=False)
    run = PartialRun("better_attention", settings, tmp_path, "cpu", lambda _: None)
    assert len(set(run.go(STUDIES["better_attention"]))) == len(jobs_of(given["data"], (), 2))


def test_unequal_numbers_of_seeds_are_told():
    found = {"sst": {PLAIN: some(0.5, 0.6), "masked": some(0.5)}}
    assert _notes(found) == ["2 seeds of: sst, labels alone.", "1 seed of: sst, masked."]
    assert _notes({"sst": {PLAIN: some(0.5)}}) == []


def test_no_claim_is_decided_on_one_seed():
    said = verdicts({"sst": {PLAIN: some(0.5, 0.5), "conicity": some(0.9), "masked": some(0.9)}})
    assert set(said.values()) == {"not tested here"}


def test_records_are_put_together_by_seed():
    records = Records()
    for seed, name, case in jobs_of(("sst",), ("masked:weight=1",), 3):
        if (seed, case.name) != (0, "masked"):
            records.add(seed, name, case, figures(0.5 + seed / 10))
    findings = put_together(records)
    assert findings.seeds == (0, 1, 2)
    assert gains(records.found, "sst", "masked", s_of) == [0.0, 0.0]


@pytest.mark.parametrize("kind", [ENCODER, IDENTIFIABLE])
def test_an_encoder_of_one_layer_learns_and_is_opened(kind):
    parts = samples.Parts(TEXTS, TEXTS, TEXTS, "mine")
    how = {"vectors": None, "epochs": 60, "device": torch.device("cpu")}
    subject, accuracy = train_encoder(kind, parts, seed=0, **how)
    again, same = train_encoder(kind, parts, seed=0, **how)
    assert accuracy == same == 1.0 and subject.labels == ["bad", "good"]
    assert [site.kind for site in subject.sites] == ["encoder"] and subject.sites[0].heads == 8
    weights = zip(subject.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)
    examples = [Example("the film was warm a", "good", ((13, 17),)), Example("so dull", "bad")]
    found = judged(subject, examples, ("raw_attention", "attention_rollout"))
    for each in found.values():
        assert set(each) == {"AUPRC", "s, delete", "s, mask", "s"} and 0 < each["AUPRC"] <= 1


def test_a_method_that_is_not_defined_says_so():
    trained = attlas.train("average", TEXTS, epochs=1)
    found = judged(
        trained.subject, [Example("a warm film", "good", ((2, 6),))], ("attention_rollout",)
    )
    assert "pool" in found["attention_rollout"]["refused"]
    assert s_of({"methods": found}) is None


def test_a_study_is_put_together_from_what_is_there(tmp_path):
    path = Path(__file__).parents[2] / "scripts" / "better_attention_so_far.py"
    spec = importlib.util.spec_from_file_location("so_far", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    settings = script.STUDIES[script.NAME].settings({"vectors": "mine"}, quick=False)
    run = script.Run(script.NAME, settings, tmp_path, "cpu", lambda _: None)
    own = importlib.import_module("attlas.studies.better_attention")
    for job in jobs_of(("sst_wiki",), ("deception:weight=1",), 2):
        s = 0.2 if job[2].name == "deception" else 0.9
        run.kept(own.part_of(*job), lambda s=s: figures(s), apart_from=own.APART)
    assert script.put_together(tmp_path, "mine") == 4
    found = json.loads((tmp_path / "better_attention.json").read_text("utf-8"))
    (told,) = [each for each in found["claims"] if each["said"].startswith("The test tells")]
    assert told["ours"]["value"] == pytest.approx(-0.7) and found["seeds"] == [0, 1]
    assert script.put_together(tmp_path, "others") == 0

"""Head importance on models whose important heads are known, its intervals, its file."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import subjects
import tiny
import torch
from subjects import LONG, OTHER, SHORT, small

import attlas
from attlas.data.generated import recall
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.heads import importance as rank_importance
from attlas.heads.rankings import RANKINGS, of_unit_length
from attlas.results import HeadImportance, Site

TASK, WIDTH = "sequence classification", 8
DATA = [(LONG, 0), (SHORT, 1), (OTHER, 0), ("the dog was not good", 1)]
SEEING = [each.name for each in RANKINGS if not each.control]


@pytest.fixture(scope="module")
def subject():
    return subjects.subject(TASK)


def importance(subject, by, **options):
    return attlas.head_importance(subject, DATA, by, **options)


@pytest.fixture(scope="module")
def heard():
    """A model in which one head alone is heard, and decides what is said of the first text."""
    subject = small("Bert", "ForSequenceClassification", **tiny.BERT_SHAPE, num_labels=2)
    model = subject.model
    for layer, block in enumerate(model.bert.encoder.layer):
        weight = block.attention.output.dense.weight.data
        for head in range(4):
            if (layer, head) != (1, 2):
                weight[:, head * WIDTH : (head + 1) * WIDTH] = 0
        weight *= 10
    margins = [margin(subject)]
    with attlas.prune(subject, {"encoder.1": 2}):
        margins.append(margin(subject))
    model.classifier.bias.data[0] -= sum(margins) / 2
    return subject


@torch.no_grad()
def margin(subject):
    """By how much the first label is ahead of the other."""
    given = subject.tokenizer(LONG, return_tensors="pt")
    one, other = subject.model(**given).logits[0]
    return (one - other).item()


@pytest.mark.parametrize("by", ["attattr", "taylor", "taylor_michel", "accuracy_difference"])
def test_a_head_that_alone_is_heard_is_alone_important(heard, by):
    data = [(text, heard.predict(text)["label"].item()) for text, _ in DATA]
    found = attlas.head_importance(heard, data, by)
    assert found.order()[0] == ("encoder.1", 2) and found.mean.max() > 1e-4
    others = np.delete(found.mean, found.heads.index(("encoder.1", 2)))
    np.testing.assert_allclose(others, 0, atol=1e-9)


def test_the_heads_that_look_up_a_value_are_found():
    subject, data = attlas.load("recall"), recall.generate(24, 1)
    attributed = attlas.head_importance(subject, data, "attattr", steps=10)
    ablated = attlas.head_importance(subject, data, "accuracy_difference")
    # The head of the upper layer that attends from the key asked for to the value.
    to_value = np.zeros(4)
    for each in data:
        maps = subject.attention(each.text)
        start, end = each.fields["value"]
        places = [i for i, at in enumerate(maps.tokens.offsets) if at == (start, end)]
        assert len(places) == 1
        to_value += maps["decoder.1"][:, -1, places].sum(axis=-1)
    strongest = int(to_value.argmax())
    upper = [head for site, head in attributed.order() if site == "decoder.1"]
    assert upper[0] == strongest
    assert ("decoder.1", strongest) in ablated.order()[:2]


@pytest.mark.parametrize("by", SEEING)
def test_intervals_hold_the_mean_and_have_width(subject, by):
    found = importance(subject, by)
    assert (found.low <= found.mean + 1e-12).all() and (found.mean <= found.high + 1e-12).all()
    if by != "accuracy_difference":  # its values may all be the same
        assert (found.high > found.low).all()


def test_an_interval_is_that_of_means_of_texts_drawn_anew(subject):
    found = importance(subject, "attention")
    one = np.array([importance_of_one(subject, each) for each in DATA])
    draws = np.random.default_rng(7).integers(len(DATA), size=(4000, len(DATA)))
    low, high = np.quantile(one[draws].mean(axis=1), [0.025, 0.975], axis=0)
    spread = (one.max(axis=0) - one.min(axis=0)).max()
    np.testing.assert_allclose(found.low, low, atol=0.1 * spread)
    np.testing.assert_allclose(found.high, high, atol=0.1 * spread)


def importance_of_one(subject, example):
    return attlas.head_importance(subject, [example], "attention").mean


def test_layers_of_different_sizes_are_each_made_of_length_one():
    sites = (Site("encoder", 0, 1), Site("encoder", 1, 2))
    np.testing.assert_allclose(
        of_unit_length(np.array([[5.0, 3.0, 4.0], [2.0, 0.0, 0.0]]), sites),
        [[1, 0.6, 0.8], [1, 0, 0]],
    )


def made(values, **changes):
    origin = attlas.head_importance(subjects.subject(TASK), DATA[:1], "random").origin
    given = np.array(values, dtype=np.float64)
    sites = (Site("encoder", 0, 2), Site("encoder", 1, len(values) - 2))
    fields = {"sites": sites, "mean": given, "low": given - 1, "high": given + 1}
    return HeadImportance(**{**fields, "examples": 3, "origin": origin, **changes})


def test_the_order_and_the_lowest():
    found = made([0.1, -2.0, 7.0, 0.5])
    assert found.order() == [("encoder.1", 0), ("encoder.1", 1), ("encoder.0", 0), ("encoder.0", 1)]
    assert found.lowest(2) == [("encoder.0", 0), ("encoder.0", 1)] and found.lowest(0) == []
    assert list(found.to_pandas()["rank"]) == [3, 4, 1, 2]
    with pytest.raises(UsageError, match="lowest 5 of 4 heads"):
        found.lowest(5)


def test_equals_are_not_ranked_by_their_layer():
    lowest = made([0.0] * 40).lowest(20)
    assert 5 < sum(head < 18 for site, head in lowest if site == "encoder.1") < 15


def test_correlation_is_by_rank_and_by_value():
    one, other = made([1.0, 2.0, 3.0, 4.0]), made([1.0, 3.0, 2.0, 40.0])
    found = one.correlation(other)
    assert found.spearman == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert found.pearson == pytest.approx(np.corrcoef(one.mean, other.mean)[0, 1])
    assert one.correlation(made([5.0] * 4)).spearman == 0
    with pytest.raises(UsageError, match="do not have the same sites"):
        one.correlation(made([1.0] * 5))


def test_it_comes_back_from_a_file_and_from_json(tmp_path, subject):
    found = importance(subject, "taylor")
    for again in (
        HeadImportance.load(found.save(tmp_path / "heads")),
        HeadImportance.from_dict(found.to_dict()),
    ):
        assert again.payload() == found.payload() and again.sites == found.sites
    assert "attlas.head_importance(subject, data, 'taylor')" in found.code()


def test_texts_that_are_too_long_are_counted(subject):
    long = "the film " * 200
    found = attlas.head_importance(subject, [*DATA, (long, 0)], "attention")
    assert found.examples == len(DATA) and found.notes[0].startswith("1 left out: ")
    cut = attlas.head_importance(subject, [*DATA, (long, 0)], "attention", truncate=True)
    assert cut.examples == len(DATA) + 1 and cut.notes == ()


def test_labels_of_several_tokens_are_counted():
    data = [*recall.generate(3, 0), ("a ant b bee a", "ant bee")]
    found = attlas.head_importance(attlas.load("recall"), data, "attention")
    assert found.examples == 3 and found.notes == ("1 left out: the label is more than one token",)


def test_labels_that_the_model_does_not_know_are_counted(subject):
    found = attlas.head_importance(subject, [*DATA, ("a blue film", "blue")], "attention")
    assert found.examples == len(DATA)
    assert found.notes == ("1 left out: the model does not know the label",)


def test_labels_may_be_names(subject):
    named = [(text, subject.labels[label]) for text, label in DATA]
    found = attlas.head_importance(subject, named, "taylor")
    assert np.array_equal(found.mean, importance(subject, "taylor").mean)


def test_what_cannot_be_is_said(subject):
    with pytest.raises(UnknownNameError, match="did you mean 'taylor'"):
        importance(subject, "tailor")
    with pytest.raises(UnknownNameError, match="unknown option of taylor 'steps'"):
        importance(subject, "taylor", steps=3)
    with pytest.raises(UnknownNameError, match="unknown label 'blue'"):
        attlas.head_importance(subject, [(LONG, "blue")])
    with pytest.raises(UnsupportedModelError, match="must choose a label or a token"):
        attlas.head_importance(subjects.subject("regression"), DATA)


def test_the_model_is_left_as_it_was(subject):
    before = deepcopy(subject.model.state_dict())
    said = subject.predict(LONG)
    for by in RANKINGS.names():
        importance(subject, by)
    assert subject.predict(LONG).equals(said)
    assert all(torch.equal(each, before[name]) for name, each in subject.model.state_dict().items())


def test_conversations_are_asked_about_as_the_template_writes_them():
    """The same importance as of the texts that the template makes of them."""
    given = subjects.subject("causal lm")
    words = deepcopy(given.tokenizer)
    words.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    asked = attlas.Subject(given.model, words)
    talks = [([{"role": "user", "content": text}], 7) for text in (LONG, SHORT)]
    found = attlas.head_importance(asked, talks, "taylor")
    expected = attlas.head_importance(asked, [(LONG, 7), (SHORT, 7)], "taylor")
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5)
    with attlas.prune(asked, [(asked.sites[0], 1)]) as pruned:
        talk, text = (pruned.predict(each) for each in (talks[0][0], LONG))
    assert talk["probability"].tolist() == text["probability"].tolist()


def test_scores_of_each_text_are_kept_and_stopped_work_goes_on(subject, tmp_path, monkeypatch):
    monkeypatch.setitem(rank_importance.PIECE, "cpu", 1)
    out = tmp_path / "heads.parquet"
    scored = []
    score = rank_importance._score

    def note(question, *given):
        scored.append(question.order)
        return score(question, *given)

    def stop(step):
        if len(scored) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(rank_importance, "_score", note)
    with pytest.raises(KeyboardInterrupt):
        importance(subject, "taylor", out=out, watch=stop)
    found = importance(subject, "taylor", out=out)
    assert len(scored) == len(DATA) and not (tmp_path / "heads.parquet.parts").exists()
    table = pd.read_parquet(out)
    assert sorted(table.text) == sorted(text for text, _ in DATA)
    assert np.array(table.scores.tolist()).mean(axis=0) == pytest.approx(found.mean, rel=1e-12)
    again = importance(subject, "taylor", out=out)
    assert len(scored) == len(DATA)
    assert again.to_dict() == found.to_dict() == importance(subject, "taylor").to_dict()


def test_a_file_of_other_scores_is_refused(subject, tmp_path):
    out = tmp_path / "heads.parquet"
    importance(subject, "attention", out=out)
    with pytest.raises(UsageError, match='ranking is "attention" there and "taylor" here'):
        importance(subject, "taylor", out=out)
    with pytest.raises(UsageError, match=r"ends in \.parquet"):
        importance(subject, "taylor", out=tmp_path / "heads.csv")

"""The tables of a report: agreement, removals, marks, and what is no evidence and left out."""

from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from audits import AIMS, REMOVALS, TRUTH, bag_texts, small_audit
from known_models import WEIGHTS, bag_of_words
from scipy import stats
from subjects import ask

import attlas
from attlas.auditing.report.sections import _words
from attlas.auditing.work import explained, items
from attlas.errors import UnsupportedModelError
from attlas.models.encoding.request import Request
from attlas.removing.unusualness import unusualness

COUNT = 4
METHODS = ("raw_attention", "attention_rollout", TRUTH, "leave_one_out", "lime")
WORD = "w07"  # in every text, and marked there


def marked(text):
    words = f"{text.replace(f'{WORD} ', '')} {WORD}"
    label = "POSITIVE" if sum(WEIGHTS[word] for word in words.split()) > 0 else "NEGATIVE"
    return {"text": words, "label": label, "marks": [(len(words) - len(WORD), len(words))]}


@cache
def audited():
    data = [marked(text) for text in bag_texts(COUNT)]
    measures = (*AIMS, "tau_leave_one_out", "auprc", "infidelity")
    return small_audit(data=data, methods=METHODS, measures=measures, spans="marks")


@cache
def texts():
    return [marked(text)["text"] for text in bag_texts(COUNT)]


def cells(report):
    return report.to_pandas().set_index(["method", "measure", "removal"])


def test_circular_pairs_have_no_figure():
    found = cells(audited())
    for method, measure, removal in (
        ("leave_one_out", "comprehensiveness", "delete"),
        ("leave_one_out", "tau_leave_one_out", "mask"),
        ("lime", "sufficiency", "mask"),
    ):
        cell = found.loc[method, measure, removal]
        assert np.isnan(cell["value"]) and "circular" in cell["note"] and not cell["best"]
    assert np.isfinite(found.loc["leave_one_out", "comprehensiveness", "mask"]["value"])
    standing = {(each.method, each.removal) for each in audited().standings}
    assert ("lime", "mask") not in standing and ("lime", "delete") in standing
    shown = {(line.method, panel.removal) for panel in audited().panels for line in panel.lines}
    assert ("lime", "mask") not in shown and (TRUTH, "mask") in shown
    assert audited().verdict.bounds["mask"].reference != "integrated_gradients from mask"


def test_tau_of_leave_one_out_is_one_for_the_truth():
    """The logarithm of the probability without a word falls with the weight of the word."""
    for removal in REMOVALS:
        value = cells(audited()).loc[TRUTH, "tau_leave_one_out", removal]["value"]
        assert value == pytest.approx(1)


def test_methods_agree_as_scipy_says():
    bag = bag_of_words()
    scores = {
        name: [found.scores[1:-1] for found in attlas.explain(bag, texts(), name)]
        for name in ("raw_attention", TRUTH)
    }
    wanted = np.mean([stats.kendalltau(*pair)[0] for pair in zip(*scores.values(), strict=True)])
    agreement = audited().agreement
    one, other = (agreement.methods.index(name) for name in scores)
    matrix = np.array(agreement.by["Kendall τ"])
    assert matrix[one, other] == pytest.approx(wanted) and (np.diag(matrix) == 1).all()
    assert (matrix == matrix.T).all()


def test_removals_are_compared_by_the_order_of_the_methods():
    found = cells(audited())["value"]
    names = [name for name in METHODS if name not in ("lime", "leave_one_out")]
    for pair in audited().removals:
        means = [
            [found[name, pair.measure, removal] for name in names]
            for removal in (pair.one, pair.other)
        ]
        assert pair.figure.value == pytest.approx(stats.spearmanr(*means)[0])
        assert pair.figure.low <= pair.figure.value <= pair.figure.high
    assert [pair.measure for pair in audited().removals] == list(AIMS)


def test_a_removal_whose_texts_are_strange_comes_with_a_remedy():
    model = deepcopy(bag_of_words().model)
    with torch.no_grad():  # a mask like no word
        model.bert.embeddings.word_embeddings.weight[bag_of_words().tokenizer.mask_token_id] = 99
    odd, texts = attlas.Subject(model, bag_of_words().tokenizer, name="odd"), bag_texts(12)
    found = {each.removal: each for each in small_audit(odd, texts).unusual}
    assert list(found) == ["delete", "mask"]
    for removal, each in found.items():
        expected = unusualness(list(odd.ask(texts, Request())), removal)
        assert each.figure.value == pytest.approx(expected.values.mean())
        assert each.figure.low <= each.figure.value <= each.figure.high
        assert (each.figure.n, each.usual) == (12, "the same texts cut short")
    assert found["delete"].remedy == ""
    assert "trust delete more" in found["mask"].remedy
    assert "fine-tune the model with random words masked" in found["mask"].remedy


def test_marks_are_a_line_of_their_own():
    """One word of each text is marked: its average precision is one over its rank."""
    wanted = []
    for text in texts():
        weights = np.array([WEIGHTS[word] for word in text.split()])
        weights *= np.sign(weights.sum())
        wanted.append(1 / (1 + (weights > weights[-1]).sum()))
    found = cells(audited())["value"]
    assert found[TRUTH, "auprc", ""] == pytest.approx(np.mean(wanted))
    line = audited().plausibility
    assert (
        line.section == "plausibility" and f"{found[METHODS[0], 'auprc', '']:.2f}" in line.sentence
    )
    assert "auprc" not in audited().verdict.sentence
    assert small_audit(data=bag_texts(2), measures=["sufficiency"]).plausibility is None


def test_shuffled_scores_stand_beside_each_method_where_their_size_counts():
    """Infidelity goes by the scores themselves: one set of shuffles cannot serve all methods."""
    found = cells(audited())
    assert np.isnan(found.loc["shuffled", "infidelity", "mask"]["value"])
    assert np.isfinite(found.loc[TRUTH, "infidelity", "mask"]["value"])
    assert 0 < found.loc[TRUTH, "infidelity", "mask"]["p"] <= 1


def test_the_best_is_beyond_doubt_or_there_is_none():
    few = cells(audited())
    assert not few["best"].any()  # four texts: no sign-flip test is below 1 in 16
    data = bag_texts(12)
    many = cells(small_audit(data=data, measures=["comprehensiveness"], removal=["mask"]))
    assert many[many["best"]].index.tolist() == [(TRUTH, "comprehensiveness", "mask")]
    assert many["p"][TRUTH, "comprehensiveness", "mask"] < 0.05


def test_a_method_that_refuses_the_model_is_listed_and_the_rest_goes_on(monkeypatch, tmp_path):
    usual = explained.Recipe._scored

    def refuse(recipe, question):
        if recipe.method.name == "attention_rollout":
            raise UnsupportedModelError("this model\nis not for it")
        return usual(recipe, question)

    monkeypatch.setattr(explained.Recipe, "_scored", refuse)
    given = {"data": bag_texts(3), "measures": ["sufficiency"], "removal": ["mask"]}
    report = small_audit(**given, methods=["attention_rollout", *METHODS[::2]], out=tmp_path)
    assert "attention_rollout was left out: this model is not for it" in report.notes
    assert "attention_rollout" not in {row.method for row in report.table.rows}
    assert report.verdict.method == "raw_attention"
    rows = pd.read_parquet(tmp_path / "results.parquet")
    assert "attention_rollout" not in set(rows["method"])


def test_a_robustness_measure_that_refuses_is_listed_and_the_rest_goes_on(monkeypatch):
    usual = items.sensitivities

    def refuse(questions, recipe, **others):
        if recipe.method.name in ("attention_rollout", TRUTH):
            raise UnsupportedModelError("this model\nis not for it")
        return usual(questions, recipe, **others)

    monkeypatch.setattr(items, "sensitivities", refuse)
    given = {"data": bag_texts(3), "measures": ["sufficiency", "sensitivity"], "removal": ["mask"]}
    report = small_audit(**given, methods=["raw_attention", "attention_rollout", TRUTH])
    reason = "this model is not for it"
    assert f"sensitivity of attention_rollout, {TRUTH} was left out: {reason}" in report.notes
    found = cells(report)
    assert np.isfinite(found.loc["raw_attention", "sensitivity", ""]["value"])
    assert found.loc[TRUTH, "sensitivity", ""]["note"] == reason


def test_a_robustness_measure_that_refuses_every_method_keeps_its_column(monkeypatch):
    def refuse(questions, recipe, **others):
        raise UnsupportedModelError(f"no vectors for {recipe.method.name}")

    monkeypatch.setattr(items, "sensitivities", refuse)
    given = {"data": bag_texts(3), "measures": ["sufficiency", "sensitivity"], "removal": ["mask"]}
    notes = cells(small_audit(**given))["note"]
    assert notes["raw_attention", "sensitivity", ""] == "no vectors for raw_attention"
    assert notes[TRUTH, "sensitivity", ""] == f"no vectors for {TRUTH}"
    assert notes["position", "sensitivity", ""] == "not asked"


def test_a_figure_that_no_text_has_is_called_undefined(monkeypatch):
    monkeypatch.setattr(items, "sensitivities", lambda *_, **__: np.full(3, np.nan))
    given = {"data": bag_texts(3), "measures": ["sufficiency", "sensitivity"], "removal": ["mask"]}
    notes = cells(small_audit(**given))["note"]
    assert notes["raw_attention", "sensitivity", ""] == "undefined on every text"


def test_examples_say_what_the_model_makes_of_the_text_without_its_first_words():
    for example in audited().examples:
        words = [piece.strip() for piece in example.tokens]
        weights = np.array([WEIGHTS[word] for word in words])
        sign = 1 if example.label == "POSITIVE" else -1
        assert sign * weights.sum() > 0
        assert example.true_label == example.label  # the bag is right on every text
        for reading in example.readings:
            left = np.delete(weights, list(reading.removed)).sum()
            assert reading.label == ("POSITIVE" if left > 0 else "NEGATIVE")
            wanted = 1 / (1 + np.exp(-2 * sign * left))
            assert reading.probability == pytest.approx(wanted, abs=1e-6)
    assert audited().examples


def test_the_tokens_of_an_example_are_joined_to_words():
    question = ask("sequence classification")
    tokens = question.inputs.tokens[0]
    content = [place for place, special in enumerate(tokens.special) if not special]
    words: list[tuple[int, ...]] = []
    for place, position in enumerate(content):  # a piece of this tokenizer begins with ##
        inside = tokens[position].startswith("##")
        words = [*words[:-1], (*words[-1], place)] if inside else [*words, (place,)]
    assert _words(question, content) == tuple(words)
    assert len(words) < len(content)


def test_examples_hold_what_matters_and_the_licence_of_the_weights():
    shares = []
    for example in audited().examples:
        assert example.words == tuple((place,) for place in range(len(example.tokens)))
        sign = 1 if example.label == "POSITIVE" else -1
        weights = sign * np.array([WEIGHTS[piece.strip()] for piece in example.tokens])
        truth, licence = example.truth, example.licence
        # A word of a bag pulls one way in every order.
        assert (np.sign(truth.pull) == np.sign(weights)).all()
        assert truth.importance == pytest.approx(np.abs(truth.pull), abs=1e-6)
        assert truth.s == licence.removals[0].share
        assert [row.removal for row in licence.removals] == list(audited().verdict.bounds)
        for row in licence.removals:
            assert not row.enough or weights[list(row.enough)].sum() > 0
            assert not row.needed or np.delete(weights, list(row.needed)).sum() <= 0
        shares.append(truth.s)
    typical, most, least = shares
    assert most >= typical >= least

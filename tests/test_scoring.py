"""Scoring: one who knows the truth gets everything, one who inverts it little, chance its due."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from attlas.cli.main import main
from attlas.data import texts
from attlas.data.generated import dates, facts, recall, shortcuts
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.methods import METHODS, Method, Scored
from attlas.models.load import load
from attlas.scoring import BENCHES, score
from attlas.tokens import overlap

COUNT = 3
KNOWN_TRUTH = [name for name in BENCHES if name != "sentiment"]


def known_examples():
    """Every text that may be asked, as the generators give it, without a look at the benches."""
    drawn = recall.generate(20, 0) + dates.generate(20, 0) + facts.generate(20, 0)
    for kind in shortcuts.KINDS:
        drawn += shortcuts.generate(20, 0, kind)
    return {example.text: example for example in [*drawn, *texts("reviews")]}


EXAMPLES = known_examples()


def truth_of(text, tokens):
    """One for each token that counts, two for the one that is the answer, none for the others."""
    example = EXAMPLES[text]
    spans = [(span, 1.0) for span in example.spans]
    for name in {"value", "source"} & set(example.fields):
        spans.append((example.fields[name], 2.0))
    if "sources" in example.fields:
        spans = [(example.fields["sources"][len(tokens.sources["prefix"])], 1.0)]
    segment = "text_b" if isinstance(text, tuple) else "text"
    scores = np.zeros(len(tokens))
    for span, weight in spans:
        for i, place in enumerate(tokens.offsets):
            if place and tokens.segments[i] == segment and overlap(place, span):
                scores[i] = weight
    return scores


def from_truth(change):
    """A method that knows the truth, and says of it what `change` makes of it.

    Tokens that are in no ranking get more than any other: special ones, the question before a
    story, what the decoder has written.
    """

    def score_tokens(question):
        rows = []
        for text, tokens in zip(question.inputs.texts, question.inputs.tokens, strict=True):
            ranked = "text_b" if isinstance(text, tuple) else "text"
            scores = change(truth_of(text, tokens))
            for i, name in enumerate(tokens.segments):
                if tokens.special[i] or name != ranked:
                    scores[i] = 99.0
            rows.append(torch.tensor(scores))
        return Scored(torch.stack(rows))

    return score_tokens


def refuse(question):
    if question.subject.name == "recall":
        raise UnsupportedModelError("there is nothing\nto be seen here")
    return Scored(torch.zeros(len(question), len(question.inputs.tokens[0])))


@pytest.fixture
def fakes(monkeypatch):
    made = {
        "oracle": Method("oracle", from_truth(lambda t: t), "reference", False, None, "", ""),
        "inverse": Method("inverse", from_truth(lambda t: 2 - t), "reference", False, None, "", ""),
        "against": Method("against", from_truth(lambda t: -t), "reference", True, None, "", ""),
        "refusing": Method("refusing", refuse, "reference", False, None, "", ""),
    }
    made["slow_oracle"] = replace(made["oracle"], name="slow_oracle", cost="expensive")
    for name, method in made.items():
        monkeypatch.setitem(METHODS._parts, name, method)


def test_the_truth_gets_everything_and_its_inverse_little(fakes):
    found = score(methods=["oracle", "inverse", "against"], count=COUNT)
    assert found.models == list(BENCHES)
    assert found.methods == ["oracle", "inverse", "against", "random_scores"]
    for model in found.models:
        for name, figure in found.of(model, "oracle").figures.items():
            low = found.of(model, "inverse").figures[name].mean
            assert (figure.mean, figure.inputs) == (1, COUNT), (model, name)
            assert low < 0.5 and low <= found.of(model, "random_scores").figures[name].mean + 0.1
    # Signs do not count where truth is known, and do where people marked what speaks for a label.
    for model in KNOWN_TRUTH:
        assert all(figure.mean == 1 for figure in found.of(model, "against").figures.values())
    against = found.of("sentiment", "against").figures["AUPRC"].mean
    assert against == pytest.approx(found.of("sentiment", "inverse").figures["AUPRC"].mean)


def test_random_scores_get_what_chance_gives():
    examples = recall.generate(200, 0)
    found = score(["recall"], ["random_scores"], count=200).of("recall", "random_scores")
    expected = np.mean([chance(len(str(each.text).split()), 3) for each in examples])
    assert found.figures["AUPRC"].mean == pytest.approx(expected, abs=0.03)
    assert found.figures["value first"].mean < 0.1


def chance(count, true):
    """The mean average precision of orders drawn at random."""
    random, total = np.random.default_rng(count), 0.0
    for _ in range(200):
        places = np.sort(random.choice(count, true, replace=False)) + 1
        total += (np.arange(1, true + 1) / places).mean()
    return total / 200


def test_raw_attention_names_the_source_where_nothing_mixes_and_fails_where_it_was_trained_to():
    found = score(["dates_plain", "shortcut-deceptive"], ["raw-attention"], count=8)
    assert found.of("dates_plain", "raw_attention").figures["source first"].mean >= 0.95
    assert found.of("shortcut_deceptive", "raw_attention").figures["precision at k"].mean <= 0.2


def test_inputs_that_the_model_gets_wrong_are_left_out():
    examples = facts.generate(30, 0)
    wrong = {"station": "bakery"}
    relabelled = [replace(each, label=wrong.get(each.label, each.label)) for each in examples]
    bench = replace(BENCHES["facts"], generate=lambda count, seed: relabelled)
    kept = bench.inputs(load("facts"), 30, 0)
    assert 10 < len(kept) < 30
    # "station" was the answer of those relabelled, so what is kept of "bakery" was so before.
    originals = {each.text: each.label for each in examples}
    assert all(originals[case.example.text] == case.answer for (case,) in kept)


def test_a_dear_method_gets_a_quarter_of_the_inputs(fakes):
    found = score(["recall", "recall"], ["oracle", "slow_oracle", "oracle"], count=8)
    assert len(found.scores) == 3  # what is named twice is done once
    counts = {each.method: each.figures["AUPRC"].inputs for each in found.scores}
    assert counts == {"oracle": 8, "slow_oracle": 2, "random_scores": 8}


def test_what_is_done_is_said_and_how_long_it_takes(fakes):
    seen = []
    score(["recall", "facts"], ["oracle"], count=12, watch=seen.append)
    known = [each.left for each in seen if each.left is not None]
    assert any("facts: oracle" in each.what for each in seen)
    assert len(known) == 4 and known == sorted(known, reverse=True) and min(known) >= 0


def test_the_seed_decides_the_inputs():
    one, same, other = (
        score(["recall"], ["raw_attention"], count=3, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same != other


def test_what_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match=r"did you mean 'recall'.*dates_plain"):
        score(["recal"])
    with pytest.raises(UnknownNameError, match="did you mean 'raw_attention'"):
        score(methods=["raw_atention"])
    with pytest.raises(UsageError, match="1 or more, not 0"):
        score(count=0)


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["attlas", "methods", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        written = capsys.readouterr()
        return stopped.value.code or 0, written.out, written.err

    return call


def test_the_command_line_prints_json(run):
    asked = ("--score", "--model", "recall", "--method", "raw_attention", "--count", 3, "--json")
    status, out, err = run(*asked)
    record = json.loads(out)
    assert (status, err) == (0, "")
    assert [each["method"] for each in record["scores"]] == ["raw_attention", "random_scores"]
    figure = record["scores"][0]["figures"]["AUPRC"]
    assert figure["low"] <= figure["mean"] <= figure["high"] and figure["inputs"] == 3


def test_a_method_that_cannot_leaves_a_dash_and_its_reason(run, fakes):
    asked = ("--score", "--model", "recall", "--model", "facts", "--method", "refusing")
    status, out, _ = run(*asked, "--count", 2)
    assert status == 0 and all(len(line) <= 80 for line in out.splitlines())
    row = next(line.split() for line in out.splitlines() if line.startswith("refusing"))
    assert row == ["refusing", "–", "–", "–"]
    assert "refusing on recall: there is nothing to be seen here" in out
    _, out, _ = run(*asked, "--count", 2, "--json")
    refused, _, other, _ = json.loads(out)["scores"]
    assert refused["figures"] is None and refused["reason"] == "there is nothing to be seen here"
    assert other["model"] == "facts" and other["reason"] is None


def test_markdown_keeps_plausibility_apart(run, fakes):
    asked = ("--score", "--markdown", "--count", 2, "--method", "oracle")
    status, out, _ = run(*asked, "--model", "recall", "--model", "sentiment", "--model", "facts")
    truth, plausibility = out.split("### Plausibility")
    assert status == 0 and truth.startswith("### Known truth")
    heads = [line for line in out.splitlines() if line.startswith("| method")]
    assert [head.count("|") for head in heads] == [8, 4]  # five figures and one
    assert "sentiment" not in truth and "recall" not in plausibility
    assert truth.count("1.00<br>1.00–1.00") == 5


def test_the_command_line_names_mistakes(run):
    status, out, err = run("--score", "--model", "recal")
    assert (status, out, "did you mean 'recall'" in err) == (2, "", True)
    status, out, err = run("--count", 3)
    assert (status, out, "need --score" in err) == (2, "", True)
    status, out, err = run("--score", "--json", "--markdown")
    assert (status, out, "not both" in err) == (2, "", True)

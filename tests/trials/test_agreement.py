"""Agreement: a bag of words in closed form, and transformers' own gradients and attention."""

import json

import numpy as np
import pytest
import torch
from known_models import WEIGHTS, bag_of_words, text_of
from plain_attention import changed
from scipy.special import expit
from scipy.stats import kendalltau
from subjects import TEXTS, arguments, ask, logits, on_eager, plain, subject

from attlas.errors import UsageError
from attlas.results.support.plots import check_plot
from attlas.trials import TRIALS, Scope
from attlas.trials.agreement import (
    agreement,
    attention_importance,
    detached_gradient_importance,
    gradient_importance,
    left_out_importance,
)
from attlas.trials.reading.agreement_findings import (
    PAIRS,
    by_class,
    figures_of,
    p_values_of,
    significant_shares,
    tau,
)

TASK = "sequence classification"
TEXT = TEXTS[TASK][0]


def of_words(text):
    """Of a bag: attention received in the last layer, gradient, what is missed without each."""
    bag = bag_of_words()
    model = bag.model
    given = bag.tokenizer(text, return_tensors="pt")
    before = model.config._attn_implementation
    on_eager(model)
    with torch.no_grad():
        attention = model(**given, output_attentions=True).attentions[-1][0]
    model.set_attn_implementation(before)
    weights = np.array([WEIGHTS[word] for word in text.split()])
    whole = expit(2 * weights.sum())
    missed = np.abs(whole - expit(2 * (weights.sum() - weights)))
    slope = 2 * whole * (1 - whole)  # of either class
    return attention.mean((0, 1))[1:-1].numpy(), slope * np.abs(weights), missed


def test_the_importances_of_a_bag_of_words_in_closed_form():
    text = text_of(7, seed=3)
    attention, gradient, missed = of_words(text)
    (question,) = bag_of_words().ask([text])
    found, known = attention_importance(question, Scope())
    assert known[0].tolist() == [False, *[True] * 7, False]
    np.testing.assert_allclose(found[0, 1:-1], attention, atol=1e-7)
    for of in (detached_gradient_importance, gradient_importance):
        np.testing.assert_allclose(of(question)[0, 1:-1], gradient, rtol=1e-4)
    # The distance of two answers of two classes is |a − b|, not half of it.
    np.testing.assert_allclose(left_out_importance(question, "delete")[0, 1:-1], missed, rtol=1e-4)


def test_every_figure_is_of_the_pair_that_it_names():
    texts = [text_of(length, seed) for seed, length in enumerate((8, 5, 8, 11))]
    found = agreement(bag_of_words().ask(texts))
    expected = {pair: [] for pair in PAIRS}
    for text in texts:
        attention, gradient, missed = of_words(text)
        for pair, (a, b) in {
            "attention and gradient": (attention, gradient),
            "attention and full gradient": (attention, gradient),
            "attention and leave-one-out": (attention, missed),
            "gradient and leave-one-out": (gradient, missed),
            "full gradient and leave-one-out": (gradient, missed),
        }.items():
            expected[pair].append(kendalltau(a, b))
    for pair, results in expected.items():
        values = [each.statistic for each in results]
        np.testing.assert_allclose(found.figures[f"τ of {pair}"], values, atol=1e-9)
        share = np.mean([each.pvalue <= 0.05 for each in results])
        assert found.details["significant"][pair] == pytest.approx(share)
        assert found.details["estimates"][f"τ of {pair}"]["mean"] == pytest.approx(np.mean(values))
    with_gradient, missed = (
        found.figures[f"τ of attention and {name}"] for name in ("gradient", "leave-one-out")
    )
    assert not np.allclose(with_gradient, missed)
    assert f"{with_gradient.mean():.2f}" in found.sentence.split("leave-one-out")[0]


def autograd(change):
    """|embedding · gradient of the predicted probability|, by transformers alone."""
    model, given = plain(TASK), arguments(TASK, TEXT)
    vectors = model.bert.embeddings.word_embeddings(given.pop("input_ids")).detach()
    vectors.requires_grad_()
    with changed(change):
        out = model(inputs_embeds=vectors, **given).logits[0]
    (gradient,) = torch.autograd.grad((out - out.logsumexp(-1)).max().exp(), vectors)
    return (vectors.detach() * gradient)[0].sum(-1).abs()


def test_gradients_with_attention_as_it_is_and_as_constants():
    question = ask(TASK, TEXT)
    full, constant = autograd(lambda _, w: w), autograd(lambda _, w: w.detach())
    assert (full - constant).abs().max() > 1e-3 * full.max()
    for found, expected in (
        (gradient_importance(question)[0], full),
        (detached_gradient_importance(question)[0], constant),
    ):
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-3)


def test_what_is_missed_is_the_distance_of_whole_answers():
    given = arguments(TASK, TEXT)
    whole = logits(TASK, given).double().softmax(-1)
    expected = []
    for place in range(1, given["input_ids"].shape[1] - 1):
        kept = [i for i in range(given["input_ids"].shape[1]) if i != place]
        less = logits(TASK, {name: value[:, kept] for name, value in given.items()})
        expected.append(float((less.double().softmax(-1) - whole).abs().sum() / 2))
    assert len(whole) > 2
    found = left_out_importance(ask(TASK, TEXT), "delete")[0]
    np.testing.assert_allclose(found[1:-1], expected, atol=1e-6)
    assert found[0] == found[-1] == 0


def test_heads_one_by_one_at_the_position_that_is_read():
    question = ask(TASK, TEXT)
    with torch.no_grad():
        attentions = plain(TASK)(**arguments(TASK, TEXT), output_attentions=True).attentions
    gradient = detached_gradient_importance(question)[0, 1:-1]
    missed = left_out_importance(question, "delete")[0, 1:-1]
    rows = [layer[0, head, 0, 1:-1] for layer in attentions for head in range(layer.shape[1])]
    heads = agreement([question]).details["heads"]
    assert [(each["layer"], each["head"]) for each in heads] == [
        (layer, head) for layer in range(len(attentions)) for head in range(attentions[0].shape[1])
    ]
    for name, other in (("gradient", gradient), ("leave-one-out", missed)):
        expected = [kendalltau(row, other).statistic for row in rows]
        np.testing.assert_allclose([each[name] for each in heads], expected, atol=1e-9)


def test_a_scope_of_all_layers_is_the_mean_of_what_is_received():
    with torch.no_grad():
        attentions = plain(TASK)(**arguments(TASK, TEXT), output_attentions=True).attentions
    received = [layer[0].mean((0, 1)) for layer in attentions[:-1]]
    received.append(attentions[-1][0, :, 0].mean(0))  # of the last layer one row is read
    expected = torch.stack(received).mean(0)
    found, _ = attention_importance(ask(TASK, TEXT), Scope("all"))
    torch.testing.assert_close(found[0, 1:-1].float(), expected[1:-1], atol=1e-6, rtol=1e-4)


def test_overlaps_by_hand():
    scores = np.zeros((4, 5))
    scores[0], scores[1], scores[2] = [5, 4, 3, 2, 1], [4, 5, 1, 2, 3], [1, 2, 3, 4, 5]
    scores[3] = [5, 1, 4, 2, 3]
    found = figures_of(scores, 0.4)
    assert found["top overlap of attention and gradient"] == 1
    assert found["top overlap of attention and full gradient"] == 0
    assert found["top overlap of attention and leave-one-out"] == 0.5
    assert found["top overlap by chance"] == 0.4
    assert found["τ of attention and full gradient"] == pytest.approx(-1)
    assert found["τ of attention and gradient"] == pytest.approx((6 - 4) / 10)
    assert found["rank-biased overlap of attention and gradient"] > 0.6
    assert (
        figures_of(np.random.default_rng(0).random((4, 25)), 0.28)["top overlap by chance"] == 0.28
    )


def test_scores_that_say_nothing_have_no_figures():
    flat = np.stack([np.ones(4), *np.random.default_rng(0).random((3, 4))])
    assert np.isnan(figures_of(flat, 0.2)["τ of attention and gradient"])
    assert np.isnan(p_values_of(flat)[0]) and not np.isnan(p_values_of(flat)[3])
    assert all(np.isnan(value) for value in figures_of(np.ones((4, 1)), 0.2).values())
    assert significant_shares(np.full((2, len(PAIRS)), np.nan)) == dict.fromkeys(PAIRS)


def test_classes_are_those_predicted_each_with_its_own_texts():
    values = np.array([0.1, 0.2, 0.6, 0.8])
    figures = {tau(pair): values for pair in PAIRS}
    p_values = np.repeat([[0.01], [0.5], [0.05], [0.04]], len(PAIRS), axis=1)
    found = by_class(figures, p_values, ["NO", "NO", "YES", "YES"])
    pair = next(iter(PAIRS))
    assert [each["texts"] for each in found.values()] == [2, 2]
    assert found["NO"]["estimates"][tau(pair)]["mean"] == pytest.approx(0.15)
    assert found["YES"]["estimates"][tau(pair)]["mean"] == pytest.approx(0.7)
    assert (found["NO"]["significant"][pair], found["YES"]["significant"][pair]) == (0.5, 1)
    many = [str(number) for number in range(40)]
    assert by_class({name: np.ones(40) for name in figures}, np.ones((40, 5)), many) == {}


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence", "masked lm"])
def test_other_tasks_are_tried_too(task):
    found = TRIALS["agreement"].run([ask(task)], Scope(), seed=1)
    assert -1 <= found.figures["τ of attention and leave-one-out"][0] <= 1
    for plot in found.plots:
        check_plot(plot)
    json.dumps(found.details, allow_nan=False)


def test_texts_come_back_in_their_order_in_any_company():
    texts = TEXTS[TASK]
    found = agreement(subject(TASK).ask(texts))
    assert found.texts == tuple(range(len(texts)))
    for number, text in enumerate(texts):
        alone = agreement([ask(TASK, text)])
        for name, values in alone.figures.items():
            assert found.figures[name][number] == pytest.approx(values[0], abs=1e-6, nan_ok=True)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="is a value"):
        agreement([ask("regression")])
    with pytest.raises(UsageError, match="share must be above 0"):
        agreement([ask(TASK)], share=0.0)

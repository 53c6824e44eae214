"""Gradient × attention against autograd on transformers' own maps, and against nudged attention."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, attention_of, on_eager, plain, subject
from tiny import BART_SHAPE, subject_parts, text_subject
from transformers.models.bert import modeling_bert

import attlas
from attlas.errors import UsageError
from attlas.methods.gradient_attention import gradient_attention, weigh
from attlas.models.encoding.request import Request

TASK = "sequence classification"
ROWS = {TASK: 0, "next sentence": 0, "image classification": 0, "causal lm": -1, "regression": 0}


def product(output, score, positive=False, times_attention=True):
    """Attention times gradient of each kind, `[layer, head, query, key]`, by plain autograd."""
    found = attention_of(output)
    flat = [each for maps in found.values() for each in maps]
    gradients = iter(torch.autograd.grad(score, flat, allow_unused=True))
    weighed = {}
    for kind, maps in found.items():
        pairs = [(a.detach(), torch.zeros_like(a) if g is None else g) for a, g in
                 [(each, next(gradients)) for each in maps]]  # fmt: skip
        each = torch.cat([a * g if times_attention else g for a, g in pairs])
        weighed[kind] = each.clamp(min=0) if positive else each
    return weighed


def best_logit(output):
    return output.logits.flatten(0, -2)[-1].max()


def scores(task, text, **options):
    found = attlas.explain(subject(task), text, "gradient_attention", **options)
    return torch.from_numpy(found.scores)


@pytest.mark.parametrize("task", ROWS)
def test_is_attention_times_the_gradient_of_the_logit(task):
    for text in TEXTS[task]:
        output = plain(task)(**arguments(task, text), output_attentions=True)
        expected = product(output, best_logit(output))["only"][-1].mean(0)[ROWS[task]]
        torch.testing.assert_close(scores(task, text), expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("layer", [0, -1, None])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("times_attention", [False, True])
def test_options(layer, positive, times_attention):
    output = plain(TASK)(**arguments(TASK, TEXTS[TASK][0]), output_attentions=True)
    options = {"positive": positive, "times_attention": times_attention}
    rows = product(output, output.logits[0, 2], **options)["only"].mean(1)[:, 0]
    expected = rows.mean(0) if layer is None else rows[layer]
    found = scores(TASK, TEXTS[TASK][0], target=2, layer=layer, **options)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)
    assert not positive or found.min() >= 0


def test_a_contrast_is_the_gradient_of_the_difference():
    output = plain(TASK)(**arguments(TASK, TEXTS[TASK][0]), output_attentions=True)
    difference = output.logits[0, 2] - output.logits[0, 0]
    expected = product(output, difference)["only"][-1].mean(0)[0]
    found = scores(TASK, TEXTS[TASK][0], target="positive", contrast="negative")
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_a_string_of_tokens_sums_over_the_rows_it_is_read_from():
    task, text = "causal lm", TEXTS["causal lm"][0]
    chain = tuple(subject(task).tokenizer(" dog was")["input_ids"])
    output = plain(task)(**arguments(task, text, extra=chain[:-1]), output_attentions=True)
    table = output.logits[0, -len(chain) :].log_softmax(-1)
    total = table[range(len(chain)), list(chain)].sum()
    expected = product(output, total)["only"][-1].mean(0)[-len(chain) :].sum(0)
    found = scores(task, text, target=" dog was")
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("target", [None, "st ein"])
def test_an_encoder_decoder_has_cross_and_own_rows(target):
    task, text, prefix = "sequence to sequence", TEXTS["sequence to sequence"][0], "Das Haus"
    ids = subject(task).tokenizer(text_target=target or "x", add_special_tokens=False)["input_ids"]
    chain = tuple(ids) if target else ()
    output = plain(task)(**arguments(task, text, prefix, chain[:-1]), output_attentions=True)
    if target:
        table = output.logits[0, -len(chain) :].log_softmax(-1)
        score = table[range(len(chain)), list(chain)].sum()
    else:
        score = best_logit(output)
    found, read = product(output, score), max(len(chain), 1)
    rows = [found[kind][-1].mean(0)[-read:].sum(0) for kind in ("cross", "decoder")]
    given = scores(task, text, prefix=prefix, target=target)
    torch.testing.assert_close(given, torch.cat(rows), atol=1e-5, rtol=1e-3)


def test_bart():
    model, tokenizer = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)
    bart = attlas.Subject(model, tokenizer)
    copy = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)[0]
    given = dict(tokenizer("The cat sat", return_tensors="pt"))
    start = torch.tensor([[model.config.decoder_start_token_id]])
    output = on_eager(copy)(**given, decoder_input_ids=start, output_attentions=True)
    found = product(output, best_logit(output))
    rows = [found[kind][-1].mean(0)[-1] for kind in ("cross", "decoder")]
    given = attlas.explain(bart, "The cat sat", "gradient_attention", prefix="").scores
    torch.testing.assert_close(torch.from_numpy(given), torch.cat(rows), atol=1e-5, rtol=1e-3)


@contextmanager
def nudged(layer, head, query, key, step):
    """BERT's own eager attention with one weight moved; `layer` counts from the bottom."""
    eager, calls = modeling_bert.eager_attention_forward, []

    def moved(module, queries, keys, values, mask, **kwargs):
        output, weights = eager(module, queries, keys, values, mask, **kwargs)
        if len(calls) == layer:
            weights = weights.clone()
            weights[0, head, query, key] += step
            output = (weights @ values).transpose(1, 2).contiguous()
        calls.append(module)
        return output, weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling_bert, "eager_attention_forward", moved)
        yield


@torch.no_grad()
def slope(model, given, target, place, step=1e-5):
    found = []
    for signed in (step, -step):
        with nudged(*place, signed):
            found.append(float(model(**given).logits[0, target]))
    return (found[0] - found[1]) / (2 * step)


@pytest.mark.parametrize("layer", [0, 1])
def test_equals_finite_differences(layer):
    model, tokenizer = subject_parts(TASK)
    copy = on_eager(subject_parts(TASK)[0]).double()
    given = dict(tokenizer("a cat", return_tensors="pt"))
    (question,) = attlas.Subject(model.double(), tokenizer).ask(["a cat"], Request(target=1))
    found = gradient_attention(question, layer=layer, times_attention=False)
    size = given["input_ids"].shape[1]
    slopes = torch.tensor(
        [
            [slope(copy, given, 1, (layer, head, 0, key)) for key in range(size)]
            for head in range(4)
        ],
        dtype=torch.float64,
    )
    torch.testing.assert_close(found.maps[layer][1][0, :, 0], slopes, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(found.scores[0], slopes.mean(0), atol=1e-7, rtol=1e-5)


def test_a_map_at_every_site():
    task = "sequence to sequence"
    output = plain(task)(
        **arguments(task, TEXTS[task][0], ASKED[task]["prefix"]), output_attentions=True
    )
    expected = product(output, best_logit(output))
    found = gradient_attention(ask(task))
    for site, weights in found.maps:
        torch.testing.assert_close(
            weights[0], expected[site.kind][site.layer], atol=1e-5, rtol=1e-3
        )


def test_weigh():
    attention, gradient = torch.tensor([[[[0.5, 0.5]]]]), torch.tensor([[[[2.0, -4.0]]]])
    assert weigh(attention, gradient, False, True).tolist() == [[[[1.0, -2.0]]]]
    assert weigh(attention, gradient, True, True).tolist() == [[[[1.0, 0.0]]]]
    assert weigh(attention, gradient, False, False).tolist() == [[[[2.0, -4.0]]]]
    assert weigh(attention, gradient, True, False).tolist() == [[[[2.0, 0.0]]]]


def test_unknown_layer():
    with pytest.raises(UsageError, match="unknown layer 7: this model has layers 0 to 1"):
        scores(TASK, "a cat", layer=7)


def attcat(output, states, layers, score):
    """Sum over layers of state · gradient times the attention a token gets, as published."""
    gradients = torch.autograd.grad(score, states)
    total = 0
    for layer in layers:
        received = output.attentions[layer][0].mean(0).mean(0)
        total = total + (states[layer] * gradients[layer]).sum(-1)[0] * received
    return (total / len(layers)).detach()


@pytest.mark.parametrize("layer", [0, -1, None])
@pytest.mark.parametrize("task", [TASK, "causal lm"])
def test_on_states_it_is_attcat(task, layer):
    text = TEXTS[task][0]
    model, given = plain(task), arguments(task, text)
    vectors = model.get_input_embeddings()(given.pop("input_ids")).detach().requires_grad_()
    output = model(
        inputs_embeds=vectors, **given, output_attentions=True, output_hidden_states=True
    )
    states = list(output.hidden_states[:-1])
    layers = range(len(states)) if layer is None else [layer % len(states)]
    expected = attcat(output, states, layers, best_logit(output))
    found = scores(task, text, layer=layer, on="states")
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_on_states_of_an_encoder_decoder_both_streams_score():
    task = "sequence to sequence"
    found = attlas.explain(
        subject(task), TEXTS[task][0], "gradient_attention", on="states", **ASKED[task]
    )
    assert found.maps is None
    segments = np.array(found.segments)
    for name in ("text", "prefix"):
        assert np.abs(found.scores[segments == name]).sum() > 0


def test_on_states_without_attention_is_state_times_gradient():
    text = TEXTS[TASK][0]
    model, given = plain(TASK), arguments(TASK, text)
    output = model(**given, output_hidden_states=True)
    (gradient,) = torch.autograd.grad(output.logits[0, 2], output.hidden_states[-2])
    expected = (gradient * output.hidden_states[-2]).sum(-1)[0].detach()
    found = scores(TASK, text, target=2, on="states", times_attention=False)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)
    positive = scores(TASK, text, target=2, on="states", times_attention=False, positive=True)
    torch.testing.assert_close(positive, expected.clamp(min=0), atol=1e-5, rtol=1e-3)


def test_there_is_nothing_else_to_take_the_gradient_on():
    with pytest.raises(UsageError, match="unknown on 'values'"):
        attlas.explain(subject(TASK), "a cat", "gradient_attention", on="values")

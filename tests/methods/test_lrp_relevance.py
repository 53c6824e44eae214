"""LRP relevance against a BERT carried back by hand, and its product of layers."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, on_eager, small, subject
from tiny import LLAMA_SHAPE, XLNET_SHAPE, labels, subject_parts
from torch.nn import functional

import attlas
from attlas.errors import UsageError
from attlas.methods.lrp_relevance import follow, lrp_relevance
from attlas.models.relevance.passes import attention_relevance

METHOD = "lrp_relevance"
TASK = "sequence classification"


def check(found, expected, tolerance=1e-4):
    torch.testing.assert_close(found, expected, atol=tolerance * expected.abs().max(), rtol=1e-3)


@cache
def bert():
    """The model of the task, in float64."""
    return on_eager(subject_parts(TASK)[0]).double()


# By hand: every rule as a function of what went in and the relevance of what came out.


def linear(layer, x, relevance):
    products = (x[..., None, :] * layer.weight).clamp(min=0)
    total = products.sum(-1, keepdim=True)
    return (products / total.where(total > 0, 1.0) * relevance[..., None]).sum(-2)


def product(a, b, relevance):
    shares = relevance / (a @ b) / 2
    return a * (shares @ b.mT), b * (a.mT @ shares)


def addition(a, b, relevance):
    parts = [each * relevance / (a + b) for each in (a, b)]
    sizes = [part.sum().abs() for part in parts]
    return [
        part / part.sum() * size / sum(sizes) * relevance.sum()
        for part, size in zip(parts, sizes, strict=True)
    ]


def split(x):
    return x.unflatten(-1, (4, -1)).transpose(0, 1)


def joined(x):
    return x.transpose(0, 1).flatten(1)


def forward(block, x):
    """A block of BERT, and all that its way back needs."""
    own, output = block.attention.self, block.attention.output
    query, key, value = (split(layer(x)) for layer in (own.query, own.key, own.value))
    weights = (query @ key.mT * query.shape[-1] ** -0.5).softmax(-1)
    mixed = joined(weights @ value)
    read = output.dense(mixed)
    middle = output.LayerNorm(read + x)
    inner = functional.gelu(block.intermediate.dense(middle))
    written = block.output.dense(inner)
    result = block.output.LayerNorm(written + middle)
    return result, (x, query, key, value, weights, mixed, read, middle, inner, written)


def backward(block, held, relevance):
    """The relevance of what went into the block, and of its attention."""
    x, query, key, value, weights, mixed, read, middle, inner, written = held
    own, output = block.attention.self, block.attention.output
    of_written, of_middle = addition(written, middle, relevance)
    of_inner = linear(block.output.dense, inner, of_written)
    of_middle = of_middle + linear(block.intermediate.dense, middle, of_inner)
    of_read, of_x = addition(read, x, of_middle)
    of_mixed = linear(output.dense, mixed, of_read)
    of_weights, of_value = product(weights, value, split(of_mixed))
    of_query, of_key = product(query, key.mT, of_weights)
    for layer, part in ((own.query, of_query), (own.key, of_key.mT), (own.value, of_value)):
        of_x = of_x + linear(layer, x, joined(part))
    return of_x, of_weights


@torch.no_grad()
def by_hand(text, choice):
    """The relevance at the attention of each layer, lowest first."""
    model = bert()
    x = model.bert.embeddings(arguments(TASK, text)["input_ids"])[0]
    blocks, held = model.bert.encoder.layer, []
    for block in blocks:
        x, each = forward(block, x)
        held.append(each)
    pooled = torch.tanh(model.bert.pooler.dense(x[0]))
    start = functional.one_hot(torch.tensor(choice), 3).double()
    relevance = torch.zeros_like(x)
    of_pooled = linear(model.classifier, pooled, start)
    relevance[0] = linear(model.bert.pooler.dense, x[0], of_pooled)
    found = []
    for block, each in zip(reversed(blocks), reversed(held), strict=True):
        relevance, of_weights = backward(block, each, relevance)
        found.insert(0, of_weights)
    return found


@pytest.mark.parametrize("choice", [0, 2])
def test_relevance_at_the_attention(choice):
    text = TEXTS[TASK][0]
    question = ask(TASK, text, target=choice)
    found = attention_relevance(question, question.subject.sites)
    for layer, expected in zip(found.attention, by_hand(text, choice), strict=True):
        check(layer[0].double(), expected)
    assert found.lost < 1e-4


def layers(text, choice):
    """What each layer adds, mean over heads of gradient × relevance, with plain autograd."""
    relevance = by_hand(text, choice)
    model = bert()
    output = model(**arguments(TASK, text), output_attentions=True)
    slopes = torch.autograd.grad(output.logits[0, choice], output.attentions)
    return [
        (slope[0] * each).clamp(min=0).mean(0)
        for slope, each in zip(slopes, relevance, strict=True)
    ]


@pytest.mark.parametrize("options", [{}, {"normalise": False}, {"start_layer": -1}])
def test_is_the_product_of_layers(options):
    text, choice = TEXTS[TASK][0], 2
    chosen = layers(text, choice)[options.get("start_layer", 0) :]
    whole = torch.eye(len(chosen[0])).double()
    stayed = torch.ones(len(whole)).double()
    for layer in chosen:
        step = layer + torch.eye(len(layer))
        if options.get("normalise", True):
            stayed = stayed / step.sum(-1)
            step = step / step.sum(-1, keepdim=True)
        whole = step @ whole
    found = attlas.explain(subject(TASK), text, METHOD, target=choice, **options)
    check(torch.from_numpy(found.maps["all"][0]).double(), whole)
    expected = whole[0].clone()
    expected[0] -= stayed[0]
    check(torch.from_numpy(found.scores).double(), expected, 1e-3)


def test_two_streams_are_one_product_over_all_positions():
    lengths = {"source": 2, "prefix": 3}
    own, prefix, cross = torch.rand(1, 2, 2), torch.rand(1, 3, 3), torch.rand(1, 3, 2)
    reads = [("source", "source", own), ("prefix", "prefix", prefix), ("prefix", "source", cross)]
    whole = torch.eye(5)
    for reader, other, layer in reads:
        step = torch.zeros(5, 5)
        places = {"source": slice(0, 2), "prefix": slice(2, 5)}
        step[places[reader], places[other]] = layer[0]
        step += torch.eye(5)
        whole = step / step.sum(-1, keepdim=True) @ whole
    found, kept = follow(lengths, reads, True)
    check(found["prefix", "source"][0], whole[2:, :2])
    check(found["prefix", "prefix"][0], whole[2:, 2:])
    stayed = 1 / (1 + prefix[0].sum(-1)) / (1 + cross[0].sum(-1))
    check(kept["prefix", "prefix"][0], torch.diag(stayed))


def test_a_contrast_is_the_difference_at_the_attention():
    question = ask(TASK, target=2, contrast=0)
    found = attention_relevance(question, question.subject.sites).attention
    first, second = (by_hand(TEXTS[TASK][0], choice) for choice in (2, 0))
    for layer, one, other in zip(found, first, second, strict=True):
        check(layer[0].double(), one - other)


def test_several_tokens_begin_with_one_at_each():
    question = ask("causal lm", target="cat sat")
    assert len(question.targets[0].picks) > 1
    found = attention_relevance(question, question.subject.sites)
    assert found.lost < 1e-4 and all(each.abs().sum() > 1e-3 for each in found.attention)


@pytest.mark.parametrize(
    ("family", "shape"), [("Llama", LLAMA_SHAPE), ("Qwen3", {**LLAMA_SHAPE, "head_dim": 8})]
)
def test_decoders_with_gates_and_grouped_heads(family, shape):
    asked = small(family, "ForCausalLM", **shape)
    found = attlas.explain(asked, "the film was not good", METHOD)
    assert (found.scores >= 0).all() and found.scores.max() > 0
    assert not torch.from_numpy(found.maps["all"][0]).triu(1).any()


def test_rows_that_do_not_come_first_do_not_mix():
    """XLNet's stream has its tokens first and its rows second."""
    asked = small("XLNet", "ForSequenceClassification", **XLNET_SHAPE, **labels("a", "b"))
    texts = ["a cat sat", "my dog was"]
    (question,) = asked.ask(texts)
    together = lrp_relevance(question).scores
    for row in range(2):
        check(together[row : row + 1], lrp_relevance(question.rows([row])).scores)


def test_an_encoder_decoder_has_scores_for_source_and_prefix():
    task = "sequence to sequence"
    found = attlas.explain(subject(task), TEXTS[task][0], METHOD, **ASKED[task])
    source = [segment != "prefix" for segment in found.segments]
    assert found.scores[source].max() > 0 and found.maps["all"].shape[-1] == len(found.tokens)


def test_float32_says_what_float64_says():
    """Shares are divided by sums near zero, of which float32 alone leaves three digits."""
    text = "a warm and funny film, but far too long to be worth the trip"
    single, double = (attlas.load("sentiment", dtype=kind) for kind in ("float32", "float64"))
    held = [(each, each.data_ptr(), each.dtype) for each in single.model.parameters()]
    questions = [each.ask([text])[0] for each in (single, double)]
    found, expected = (attention_relevance(each, each.subject.sites) for each in questions)
    for one, other in zip(found.attention, expected.attention, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(
            one.double(), other, atol=1e-6 * other.abs().max().item(), rtol=1e-5
        )
    scores = [attlas.explain(each, text, METHOD).scores for each in (single, double)]
    check(*(torch.from_numpy(each).double() for each in scores), 1e-5)
    assert all(each.data_ptr() == place and each.dtype == kind for each, place, kind in held)


def test_a_model_that_does_not_run_in_float64_runs_as_it_is():
    asked = small("Bert", "ForSequenceClassification", **labels("a", "b"))
    weight = torch.eye(asked.model.classifier.in_features)
    kinds = []

    def keep_single(_module, given):
        kinds.append(given[0].dtype)
        return (given[0] @ weight,)

    with asked.model.classifier.register_forward_pre_hook(keep_single):
        (question,) = asked.ask(["a cat sat"])
        kinds.clear()
        found = attention_relevance(question, asked.sites)
    assert kinds == [torch.float64, torch.float32]
    assert found.lost < 1e-3 and all(each.abs().sum() > 1e-3 for each in found.attention)
    assert {each.dtype for each in asked.model.parameters()} == {torch.float32}


def test_maps_are_made_only_if_asked_for():
    assert not lrp_relevance(replace(ask(TASK), maps=False)).maps


def test_an_unknown_layer_is_named():
    with pytest.raises(UsageError, match="unknown layer 7: this model has layers 0 to 1"):
        attlas.explain(subject(TASK), "a cat", METHOD, start_layer=7)

"""The vectors that tokens enter as, in every family: against the lookup, and against autograd."""

from functools import cache
from types import SimpleNamespace

import pytest
import torch
from subjects import ask, small
from tiny import BART_SHAPE, FAMILIES, LABELS, SECOND_ROAD, labels

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.request import Request
from attlas.models.states.embeddings import embedding_gradients, entered_vectors, entering

EVERY = {**FAMILIES, **SECOND_ROAD}
PATCHES = 16
# Their models take no inputs_embeds.
BY_NUDGES = {"vit", "clip"}
# Their encoders stretch what they look up, and not what they are handed.
STRETCHED = {"marian": 32**0.5, "pegasus": 32**0.5}


def opened_by(case):
    """The model of a case, with a stand-in for the processor that these tests do not use."""
    return OpenModel(case.model, SimpleNamespace(tokenizer=None, image_processor=None))


@cache
def case_of(family):
    """The case of a family, shared: it is not changed."""
    return EVERY[family]()


def inputs_of(case):
    """The arguments of a case as a batch of one, its tokens numbered."""
    given = case.inputs
    name = "input_ids" if "input_ids" in given else "pixel_values"
    length = given[name].shape[1] if name == "input_ids" else PATCHES + 1
    prefix = None
    if "decoder_input_ids" in given:
        stop = length + given["decoder_input_ids"].shape[1]
        prefix = Stream("decoder_input_ids", length, stop)
    return Inputs(given, (), (), Stream(name, 0, length), prefix)


def number(output):
    """One number of an output, with all of it in."""
    found = output.logits if "logits" in output else output.logits_per_image
    generator = torch.Generator().manual_seed(0)
    return (found * torch.randn(found.shape, generator=generator)).sum()


def run(case, values=None, gradients=False):
    """The number for a case, and its streams with the gradient of the number on them."""
    inputs = inputs_of(case)
    with (
        torch.set_grad_enabled(gradients),
        entering(opened_by(case), inputs, values) as entrance,
    ):
        score = number(case.model(**case.inputs))
    found = [None] * len(entrance.leaves)
    if gradients:
        found = torch.autograd.grad(score, entrance.leaves, allow_unused=True)
    return score.detach(), entrance.entered(found)


def lookups(case):
    """The embedding of each stream by its table, or of each patch by the convolution."""
    given = case.inputs
    if "input_ids" not in given:
        projection = case.model.vit.embeddings.patch_embeddings.projection
        return [projection(given["pixel_values"]).flatten(2).transpose(1, 2)]
    parts = [case.model.text_model if case.name == "clip" else case.model]
    if "decoder_input_ids" in given:
        parts = [case.model.get_encoder(), case.model.get_decoder()]
    ids = [given["input_ids"], given.get("decoder_input_ids")]
    return [part.get_input_embeddings()(each) for part, each in zip(parts, ids, strict=False)]


@pytest.mark.parametrize("family", EVERY)
def test_values_are_what_the_embedding_gives(family):
    case = case_of(family)
    with torch.no_grad():
        expected = lookups(case)
    _, found = run(case)
    assert len(found) == len(expected)
    for each, vectors in zip(found, expected, strict=True):
        assert torch.equal(each.values, vectors)
    starts = [each.start for each in found]
    assert starts == ([1] if family == "vit" else [0, 12][: len(found)])


@pytest.mark.parametrize("family", EVERY)
def test_the_same_vectors_exchanged_change_nothing(family):
    case = case_of(family)
    score, found = run(case)
    again, _ = run(case, [each.values for each in found])
    assert torch.equal(score, again)
    other, _ = run(case, [-each.values for each in found])
    assert not torch.equal(score, other)


@pytest.mark.parametrize("family", [name for name in EVERY if name not in BY_NUDGES])
def test_the_gradient_is_that_of_inputs_embeds(family):
    case = case_of(family)
    given = dict(case.inputs)
    with torch.no_grad():
        vectors = [each.requires_grad_() for each in lookups(case)]
    for name, each in zip(["", "decoder_"], vectors, strict=False):
        del given[f"{name}input_ids"]
        given[f"{name}inputs_embeds"] = each if name else each * STRETCHED.get(family, 1)
    expected = torch.autograd.grad(number(case.model(**given)), vectors)
    _, found = run(case, gradients=True)
    for each, gradient in zip(found, expected, strict=True):
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(each.gradient, gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", sorted(BY_NUDGES))
def test_the_gradient_is_that_of_nudges(family):
    case = EVERY[family]()  # its own, to be made wide
    case.model.double()
    if "pixel_values" in case.inputs:
        case.inputs["pixel_values"] = case.inputs["pixel_values"].double()
    _, (found,) = run(case, gradients=True)
    way = torch.randn(found.values.shape, generator=torch.Generator().manual_seed(1)).double()
    ends = [run(case, [found.values + step * way])[0] for step in (1e-5, -1e-5)]
    expected = (ends[0] - ends[1]) / 2e-5
    torch.testing.assert_close((found.gradient * way).sum(), expected, atol=1e-6, rtol=1e-5)


def test_a_classifying_encoder_decoder_brings_the_source_in_twice():
    bart = small("Bart", "ForSequenceClassification", "word_level", **BART_SHAPE, **labels(*LABELS))
    (question,) = bart.ask(["The cat sat on"], Request(0))
    (found,), _ = embedding_gradients(question, "logit")
    step = 1e-2 * torch.randn(found.values.shape, generator=torch.Generator().manual_seed(1))
    step[:, -1] = 0  # the start token of the decoder stands apart
    ends = [
        embedding_gradients(question, "logit", [found.values + way])[1] for way in (step, -step)
    ]
    expected = (ends[0] - ends[1]) / 2
    torch.testing.assert_close((found.gradient * step).sum()[None], expected, atol=1e-4, rtol=1e-2)


@pytest.mark.parametrize("task", ["sequence classification", "sequence to sequence"])
def test_the_vectors_alone_are_those_of_a_whole_pass(task):
    question = ask(task)
    found, _ = embedding_gradients(question, "logit")
    for vectors, each in zip(entered_vectors(question), found, strict=True):
        assert torch.equal(vectors, each.values)


def test_tokens_that_enter_by_no_embedding_are_refused():
    case = case_of("bert")
    with torch.no_grad():
        vectors = case.model.bert.embeddings.word_embeddings(case.inputs["input_ids"])
        with entering(opened_by(case), inputs_of(case)) as entrance:
            case.model(inputs_embeds=vectors)
    with pytest.raises(UnsupportedModelError, match="the tokens of input_ids do not enter"):
        entrance.entered([])


def test_no_hook_is_left_behind():
    case = case_of("bert")
    opened = entering(opened_by(case), inputs_of(case))
    with pytest.raises(ZeroDivisionError), opened:
        raise ZeroDivisionError
    assert not any(module._forward_hooks for module in case.model.modules())

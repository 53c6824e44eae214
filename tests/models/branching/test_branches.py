"""Branches, held against a plain loop that runs the whole model for every variant."""

from dataclasses import replace
from itertools import pairwise

import pytest
import tiny
import torch
from subjects import LONG, SHORT, TEXTS, subject

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.question import Asked, Question
from attlas.models.asking.reading import attention_gradients
from attlas.models.asking.scores import target_scores
from attlas.models.branching import blocks, branch_memory, branches, variants
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.tap.edits import Edit
from attlas.models.tap.opening import tap
from attlas.results import Site
from attlas.tokens import Tokens

FAMILIES = {**tiny.FAMILIES, **tiny.SECOND_ROAD}
ONLY_SINGLE = {
    "gpt_oss",
    "mixtral",
    "gptj",
    "t5gemma2",
}  # parts of them compute in single precision
NO_BRANCHES = {"funnel", "clip"}  # lists within lists; no single target
COUNT = 3
EACH = tuple(tuple(float(n == m) for m in range(COUNT)) for n in range(COUNT))  # no sums at all


def tokens_named(segment, count):
    names = tuple(f"{segment}{i}" for i in range(count))
    return Tokens(names, (None,) * count, (False,) * count, (segment,) * count)


def inputs_of(case, rows, dtype):
    generator = torch.Generator().manual_seed(1)
    arguments = {}
    for name, value in case.inputs.items():
        if value.is_floating_point():
            other = torch.randn(value.shape, generator=generator)
        else:
            other = torch.randint(6, 90, value.shape, generator=generator)
            other = other if name.endswith("input_ids") else value
            other[:, -1] = value[:, -1]
        both = torch.cat([value, other.to(value.dtype)])[:rows]
        arguments[name] = both.to(dtype) if value.is_floating_point() else both
    length = 17 if "pixel_values" in arguments else arguments["input_ids"].shape[1]
    tokens, prefix = tokens_named("text", length), None
    if "decoder_input_ids" in arguments:
        more = arguments["decoder_input_ids"].shape[1]
        prefix = Stream("decoder_input_ids", length, length + more)
        tokens = tokens.followed_by(tokens_named("prefix", more))
    name = "input_ids" if "input_ids" in arguments else "pixel_values"
    texts, notes = ("",) * rows, ((),) * rows
    return Inputs(arguments, (tokens,) * rows, texts, Stream(name, 0, length), prefix, notes)


def question_of(family, rows, dtype=torch.float64):
    case = FAMILIES[family]()
    one = attlas.Subject(case.model.to(dtype), tiny.tokenizer("wordpiece"))
    inputs = inputs_of(case, rows, dtype)
    with tap(one.model) as seen, torch.no_grad():
        one.run(inputs.arguments)
    one.__dict__["places"] = tuple((call.site, call.path) for call in seen.calls)
    one.__dict__["stream_axes"] = (
        (1, 0) if family == "xlnet" else (0, 1)
    )  # its sample is not in this vocabulary
    asked = tuple(Asked(target=Target(str(row), ((-1, 1 + row),))) for row in range(rows))
    return Question(one, inputs, asked, tuple(range(rows)))


def as_edit(branch, number):
    def change(weights, visible):
        return branch.variants.change(branch.site, weights, visible, (number,))[0]

    return Edit("one variant", change).at(kind=branch.site.kind, layer=branch.site.layer)


def everywhere(question, count=COUNT):
    sites = question.subject.sites
    return [Branch(site, variants.permuted(count, seed=7 * i)) for i, site in enumerate(sites)]


def hold_against_a_loop(question, found, made, tolerance):
    for branch, branched in zip(made, found, strict=True):
        loop = [
            target_scores(question, "logit", as_edit(branch, n))
            for n in range(branch.variants.count)
        ]
        expected = torch.stack(loop)
        torch.testing.assert_close(branched.scores, expected, atol=tolerance, rtol=tolerance)
        assert (expected - target_scores(question, "logit")).abs().max() > 1e-4, branch.site.name


def hold_gradients_against_a_loop(question, found, made, tolerance):
    for branch, branched in zip(made, found, strict=True):
        for number in range(branch.variants.count):
            gradients = attention_gradients(question, "logit", as_edit(branch, number))
            _, expected = next(g for g in gradients if g[0].site.name == branch.site.name)
            torch.testing.assert_close(
                branched.gradients[number], expected, atol=tolerance, rtol=tolerance
            )
        clean = attention_gradients(question, "logit")
        call, _ = next(g for g in clean if g[0].site.name == branch.site.name)
        torch.testing.assert_close(branched.weights, call.weights, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("family", sorted(set(FAMILIES) - NO_BRANCHES - ONLY_SINGLE))
def test_all_layers_at_once_equal_a_loop(family, rows):
    question = question_of(family, rows)
    made = everywhere(question)
    found = run_branches(question, made, "logit", sums=EACH)
    hold_against_a_loop(question, found, made, 1e-10)
    hold_gradients_against_a_loop(question, found, made, 1e-10)


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "mpnet", "bloom", *sorted(ONLY_SINGLE)])
def test_in_single_precision_too(family):
    question = question_of(family, 2, torch.float32)
    made = everywhere(question)
    hold_against_a_loop(question, run_branches(question, made, "logit"), made, 1e-5)


@pytest.mark.parametrize("task", ["sequence classification", "causal lm", "image classification"])
def test_texts_of_a_user_branch_alike(task):
    (question,) = subject(task).ask([TEXTS[task][0]], Request())
    made = everywhere(question)
    found = run_branches(question, made, "logit")
    for branch, branched in zip(made, found, strict=True):
        loop = [target_scores(question, "logit", as_edit(branch, n)) for n in range(COUNT)]
        torch.testing.assert_close(branched.scores, torch.stack(loop), atol=1e-5, rtol=1e-5)


def test_blocks_are_studied_once_for_each_shape_of_inputs(monkeypatch):
    one = attlas.Subject(*tiny.subject_parts("causal lm"))
    studied = []
    study = blocks._study
    monkeypatch.setattr(
        blocks, "_study", lambda subject, inputs: studied.append(inputs) or study(subject, inputs)
    )
    for text in (LONG, SHORT, LONG, SHORT):
        (question,) = one.ask([text], Request())
        made = everywhere(question)
        hold_against_a_loop(question, run_branches(question, made, "logit"), made, 1e-5)
    assert [each.texts for each in studied] == [(LONG,), (SHORT,)]


def test_padding_is_seen_though_the_shape_was_met_without():
    """Whether there is a mask is found out on other inputs of the same shape."""
    whole = question_of("bert", 2)
    mask = torch.ones_like(whole.inputs.arguments["input_ids"])
    mask[1, -2:] = 0
    for given in (torch.ones_like(mask), mask):
        arguments = {**whole.inputs.arguments, "attention_mask": given}
        question = whole.about(replace(whole.inputs, arguments=arguments))
        made = everywhere(question)
        hold_against_a_loop(question, run_branches(question, made, "logit"), made, 1e-10)


def chunks(count, most):
    return [range(start, min(start + most, count)) for start in range(0, count, most)]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_chunks_make_no_difference(most, monkeypatch):
    question = question_of("bert", 2)
    made = everywhere(question)
    whole = run_branches(question, made, "logit", sums=EACH)
    monkeypatch.setattr(branches, "portions", lambda _, depths, *__: chunks(len(depths), most))
    for one, other in zip(run_branches(question, made, "logit", sums=EACH), whole, strict=True):
        torch.testing.assert_close(one.scores, other.scores)
        torch.testing.assert_close(one.gradients, other.gradients)


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_a_portion_holds_no_more_than_it_may(rows, monkeypatch):
    """A variant that starts in block d of n keeps what n − d blocks keep; the inputs keep all."""
    question, blocks_there = question_of("bert", 1), 4
    depths = [0, 0, 1, 1, 2, 3, 3, 3]
    each = branch_memory._row_bytes(question)
    found = [*branch_memory.portions(question, depths, blocks_there, True, rows * each)]
    assert [number for portion in found for number in portion] == list(range(len(depths)))

    def held(portion):
        return 1 + sum((blocks_there - depths[number]) / blocks_there for number in portion)

    assert all(held(portion) <= rows or len(portion) == 1 for portion in found)
    for one, other in pairwise(found):
        assert held([*one, other[0]]) > rows  # one more would have been too many
    assert len(found) == {1: len(depths), 3: 3, 40: 1}[rows]


def test_where_memory_is_short_the_parts_are_halved(monkeypatch):
    question = question_of("bert", 1)
    made = everywhere(question)
    whole = run_branches(question, made, "logit")
    run, sizes = branches._run, []

    def short(question, groups, *others):
        sizes.append(sum(len(group.numbers) for group in groups))
        if sizes[-1] > 2:
            raise torch.OutOfMemoryError
        return run(question, groups, *others)

    monkeypatch.setattr(branches, "_run", short)
    for one, other in zip(run_branches(question, made, "logit"), whole, strict=True):
        torch.testing.assert_close(one.scores, other.scores)
    assert max(sizes) > 2


def test_one_layer_alone_and_variants_of_every_kind():
    question = question_of("bert", 2)
    site = question.subject.sites[-1]
    made = [
        Branch(site, variants.scaled([0.0, 0.5, 1.0])),
        Branch(site, variants.each([attlas.edits.uniform(), attlas.edits.zero([1])])),
    ]
    scaled, edited = run_branches(question, made, "logit")
    torch.testing.assert_close(scaled.scores[2], target_scores(question, "logit"))
    off = target_scores(question, "logit", attlas.edits.scale(0).at(layer=-1))
    torch.testing.assert_close(scaled.scores[0], off)
    uniform = target_scores(question, "logit", attlas.edits.uniform().at(layer=-1))
    torch.testing.assert_close(edited.scores[0], uniform)


def test_rows_below_a_branch_are_computed_once(monkeypatch):
    """At each block the batch holds the inputs and what has branched off so far, and no more."""
    question = question_of("bert", 1)
    layers = question.subject.model.bert.encoder.layer
    rows = []
    handles = [
        layer.attention.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
        for layer in layers
    ]
    run_branches(question, everywhere(question, count=4), "logit")
    for handle in handles:
        handle.remove()
    assert rows[-len(layers) :] == [1 + 4 * (number + 1) for number in range(len(layers))]


def test_the_model_is_left_as_it_was():
    question = question_of("llama", 1)
    before = target_scores(question, "logit")
    run_branches(question, everywhere(question), "logit", sums=EACH)
    assert torch.equal(target_scores(question, "logit"), before)
    modules = question.subject.model.modules()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def test_what_cannot_branch_says_so():
    with pytest.raises(UnsupportedModelError, match="cannot be run block by block"):
        run_branches(question_of("funnel", 1), [], "logit")
    question = question_of("bert", 1)
    with pytest.raises(UsageError, match=r"unknown site encoder\.9: there are encoder\.0"):
        run_branches(question, [Branch(Site("encoder", 9, 4), variants.permuted(1))], "logit")


def test_a_permutation_depends_on_its_number_alone():
    visible = torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()
    weights = torch.rand(2, 3, 5, 5) * visible
    made = variants.permuted(10, seed=3)
    site = Site("decoder", 0, 3)
    alone = made.change(site, weights, visible, (7,))
    beside = made.change(site, weights, visible, (2, 7, 9))
    assert torch.equal(alone[0], beside[1])
    assert not torch.equal(beside[0], beside[1])
    assert not beside[~visible.expand(3, 2, 3, 5, 5)].any()


def test_a_model_that_loses_rows_is_refused(monkeypatch):
    question = question_of("bert", 1)
    run_branches(question, everywhere(question), "logit")
    run = question.subject.run
    monkeypatch.setattr(question.subject, "run", lambda *given: run(*given)[1:])
    with pytest.raises(UnsupportedModelError, match=r"gave 6 outputs for 7 inputs"):
        run_branches(question, everywhere(question), "logit")

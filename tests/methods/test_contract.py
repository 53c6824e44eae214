"""What every method owes: written once, asked of all that are registered."""

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from part_folders import check_files
from subjects import ASKED, LABELLED, REFUSES, TEXTS, few, in_short, subject, takes
from tiny import TASKS, subject_parts

import attlas
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.methods import FAMILIES, METHODS
from attlas.methods.support.method import COSTS, NEEDS
from attlas.models.encoding.request import Request

NAMES = METHODS.names()
DOCS = Path(__file__).parents[2] / "docs" / "methods"
every_method = pytest.mark.parametrize("method", NAMES)
PAIRS = [(task, method) for task, method in product(TASKS, NAMES) if takes(method, task)]
every_pair = pytest.mark.parametrize(("task", "method"), PAIRS)
# Two targets of each task that are read at the same place.
TWO_TARGETS = {
    **{task: (0, 1) for task in LABELLED if task != "regression"},
    "masked lm": (7, 9),
    "causal lm": (7, 9),
    "sequence to sequence": (7, 9),
}
AT = {"token classification": {"position": 2}}


@cache
def together(task, method):
    """The explanations of all texts of a task, asked at once."""
    asked = {**few(method), **ASKED.get(task, {})}
    found = attlas.explain(subject(task), TEXTS[task], method, **asked)
    assert len(found) == len(TEXTS[task])
    return found


def alone(task, method, text, **asked):
    given = {**few(method), **ASKED.get(task, {}), **asked}
    return attlas.explain(subject(task), text, method, **given)


@cache
def alone_before(task, method, number, target=None):
    """The explanation of one text of a task, asked once for all tests that compare with it."""
    asked = {} if target is None else {"target": target, **AT.get(task, {})}
    return alone(task, method, TEXTS[task][number], **asked)


@pytest.mark.parametrize(("method", "task"), [(m, t) for m in REFUSES for t in REFUSES[m]])
def test_a_model_that_is_refused_is_named(method, task):
    with pytest.raises(UnsupportedModelError, match=type(subject(task).model).__name__):
        alone(task, method, TEXTS[task][0])


@every_pair
def test_gives_one_finite_score_for_each_token(task, method):
    for found in together(task, method):
        assert found.scores.shape == (len(found.tokens),)
        assert found.scores.dtype == np.float32
        assert np.isfinite(found.scores).all()
        assert found.method == method
        assert found.prediction


@pytest.mark.parametrize(("task", "method"), in_short(PAIRS))
def test_a_batch_gives_what_each_text_gives_alone(task, method):
    lengths = {len(found.tokens) for found in together(task, method)}
    assert len(lengths) > 1 or task == "image classification"
    for number in (0, 2):  # these are one batch: their lengths are equal
        found, single = together(task, method)[number], alone_before(task, method, number)
        assert found.tokens == single.tokens
        assert found.target.name == single.target.name
        assert found.target.value == pytest.approx(single.target.value, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(found.scores, single.scores, rtol=1e-5, atol=1e-5)


@every_pair
def test_nothing_unsigned_is_below_zero(task, method):
    signed = METHODS[method].signed
    assert all(signed or (found.scores >= 0).all() for found in together(task, method))


@every_method
def test_what_is_signed_can_be_below_zero(method):
    tasks = [task for task in TASKS if takes(method, task)]
    found = [found.scores.min() < 0 for task in tasks for found in together(task, method)]
    assert any(found) == METHODS[method].signed


@every_pair
def test_maps_are_about_the_tokens(task, method):
    for found in together(task, method):
        for site, weights in found.maps or ():
            queries, keys = found.maps.query_tokens(site.name), found.maps.key_tokens(site.name)
            assert weights.shape == (site.heads, len(queries), len(keys))
            assert np.isfinite(weights).all()
            assert set(queries) <= set(found.tokens) and set(keys) <= set(found.tokens)
            assert keys == tuple(found.tokens) or "prefix" in found.segments
        assert found.maps is None or found.maps.signed == METHODS[method].signed


@pytest.mark.parametrize(
    ("task", "method"), [pair for pair in in_short(PAIRS) if pair[0] in TWO_TARGETS]
)
def test_respects_the_target(task, method):
    first, second = (alone_before(task, method, 0, target) for target in TWO_TARGETS[task])
    assert first.target.name != second.target.name
    if METHODS[method].of is None:
        assert np.array_equal(first.scores, second.scores)
    else:
        assert np.abs(first.scores - second.scores).max() > 1e-4
        expected = METHODS[method].of
        assert first.target.quantity == expected


@every_method
def test_the_same_call_gives_the_same_scores(method):
    for task in ("sequence classification", "causal lm"):
        first, second = alone_before(task, method, 0), alone(task, method, TEXTS[task][0])
        assert np.array_equal(first.scores, second.scores)


@every_method
def test_does_not_need_to_be_asked_where_gradients_are_allowed(method):
    expected = together("causal lm", method)[0].scores
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            found = alone("causal lm", method, TEXTS["causal lm"][0])
        np.testing.assert_allclose(found.scores, expected, rtol=1e-5, atol=1e-5)


@every_method
def test_half_precision_is_near_the_whole(method):
    model, tokenizer = subject_parts("sequence classification")
    half = attlas.Subject(model.to(torch.bfloat16), tokenizer)
    text = TEXTS["sequence classification"][0]
    found = attlas.explain(half, text, method, target=0, **few(method)).scores
    expected = alone_before("sequence classification", method, 0, target=0).scores
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() < 0.1 * max(np.abs(expected).max(), 0.1)


def state(model):
    """All that a method could leave behind in a model."""
    modules = list(model.modules())
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    configs = [m.config._attn_implementation for m in modules if hasattr(m, "config")]
    return {
        "training": [module.training for module in modules],
        "requires_grad": [parameter.requires_grad for parameter in model.parameters()],
        "grad": [parameter.grad is None for parameter in model.parameters()],
        "hooks": [len(getattr(module, name)) for module in modules for name in hooks],
        "attention": configs,
        "forward": [module.__dict__.get("forward") for module in modules],
        "names": [name for name, _ in [*model.named_parameters(), *model.named_buffers()]],
    }


@pytest.fixture(scope="module")
def borrowed_subjects():
    """Models left in train mode, some of their parameters frozen, and warmed up."""
    found = {}
    for task in ("sequence classification", "sequence to sequence", "image classification"):
        model, tokenizer = subject_parts(task)
        model.train()
        next(model.children()).eval()
        for parameter in list(model.parameters())[::2]:
            parameter.requires_grad_(False)
        found[task] = attlas.Subject(model, tokenizer)
        attlas.explain(found[task], TEXTS[task][1], "gradient_attention", **ASKED.get(task, {}))
    return found


@every_method
def test_leaves_the_model_as_it_was(method, borrowed_subjects):
    for task, asked in borrowed_subjects.items():
        if not takes(method, task):
            continue
        model, text = asked.model, TEXTS[task][0]
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        before, drawn = state(model), torch.get_rng_state()
        found = attlas.explain(asked, text, method, target=1, **few(method), **ASKED.get(task, {}))
        assert state(model) == before
        assert torch.equal(torch.get_rng_state(), drawn)
        assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
        expected = alone(task, method, text, target=1).scores
        np.testing.assert_allclose(found.scores, expected, rtol=1e-5, atol=1e-5)


@every_method
def test_leaves_the_model_as_it_was_when_it_fails(method, borrowed_subjects, monkeypatch):
    asked = borrowed_subjects["sequence classification"]
    (question,) = asked.ask(["a cat sat"], Request())
    before = state(asked.model)

    def fail(*_arguments, **_options):
        raise RuntimeError("the head fell off")

    monkeypatch.setattr(asked.model.classifier, "forward", fail)
    try:
        METHODS[method].score(question, {})
        failed = False
    except UnsupportedModelError as problem:
        failed = "RuntimeError: the head fell off" in str(problem)
    monkeypatch.undo()
    assert failed or method == "random_scores", "it never asked the model"
    assert state(asked.model) == before


@pytest.mark.parametrize("method", [name for name in NAMES if name != "random_scores"])
def test_without_positions_order_does_not_matter(method):
    asked = without_positions()
    tokenizer = asked.tokenizer
    ids = tokenizer(TEXTS["sequence classification"][0])["input_ids"]
    order = torch.randperm(len(ids) - 2, generator=torch.Generator().manual_seed(1)) + 1
    order = [0, *order.tolist(), len(ids) - 1]
    both = [ids, [ids[i] for i in order]]
    first, second = attlas.explain(asked, both, method, target=0)
    np.testing.assert_allclose(first.scores[order], second.scores, rtol=1e-4, atol=1e-5)
    assert np.abs(first.scores - second.scores).max() > 1e-4


@cache
def without_positions():
    model, tokenizer = subject_parts("sequence classification")
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight.zero_()
    return attlas.Subject(model, tokenizer)


@every_method
def test_says_what_it_is(method):
    found = METHODS[method]
    assert found.name == method == found.score_tokens.__name__
    assert found.family in FAMILIES
    assert found.of in (None, "logit", "probability")
    assert isinstance(found.paper, str)
    assert found.reading.endswith(".") and found.reading[0].isupper()
    assert found.summary.endswith(".")


@every_method
def test_has_a_page(method):
    page = (DOCS / f"{method}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {method}\n")
    for heading in ("What it is", "Formula", "When to use another", "What it does not mean"):
        assert f"\n## {heading}\n" in page
    assert "\n## Paper\n" in page
    untold = [option for option in METHODS[method].options if f"`{option}`" not in page]
    assert not untold, f"name these options in backticks on docs/methods/{method}.md: {untold}"


@every_method
def test_the_record_says_what_it_needs_and_gives(method):
    found = METHODS[method]
    assert set(found.needs) <= set(NEEDS)
    assert found.cost in COSTS
    assert found.gives.startswith("signed scores" if found.signed else "scores")
    assert found.needs or method == "random_scores"


@every_method
def test_an_unknown_option_names_those_there_are(method):
    with pytest.raises(UnknownNameError) as caught:
        alone("causal lm", method, "a cat", nonsense=1)
    assert f"unknown option of {method} 'nonsense'" in str(caught.value)
    assert all(name in str(caught.value) for name in METHODS[method].options)


@every_method
def test_an_option_of_the_wrong_kind_is_named(method):
    for name in METHODS[method].options:
        with pytest.raises(UsageError, match=rf"{name} of {method} is .*, not \[1\]"):
            alone("causal lm", method, "a cat", **{name: [1]})


@pytest.mark.parametrize(
    ("method", "option", "message"),
    [
        ("raw_attention", {"layer": "top"}, "layer of raw_attention is int or None, not 'top'"),
        ("raw_attention", {"layer": True}, "layer of raw_attention is int or None, not True"),
        ("raw_attention", {"fusion": None}, "fusion of raw_attention is str, not None"),
        ("attention_rollout", {"residual": "half"}, "residual of attention_rollout is float"),
        ("gradient_attention", {"positive": 1}, "positive of gradient_attention is bool, not 1"),
    ],
)
def test_options_of_the_wrong_kind(method, option, message):
    with pytest.raises(UsageError, match=message):
        alone("causal lm", method, "a cat", **option)


def test_whole_numbers_are_taken_as_they_are_meant():
    assert alone("causal lm", "attention_rollout", "a cat", residual=1).scores.tolist()[-1] == 1
    first, second = (
        alone("causal lm", "raw_attention", "a cat", layer=layer) for layer in (0, np.int64(0))
    )
    assert np.array_equal(first.scores, second.scores)


@every_method
def test_the_result_names_every_option(method):
    origin = together("causal lm", method)[0].origin
    assert origin.options == {**METHODS[method].options, **few(method)}
    assert (origin.method, origin.signed) == (method, METHODS[method].signed)


def test_every_method_has_its_file_its_test_and_its_page():
    check_files(METHODS)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("atention_rolout", "attention_rollout"), ("leave-one-in", "leave_one_out")],
)
def test_an_unknown_method_suggests_the_nearest(given, meant):
    with pytest.raises(UnknownNameError, match=f"unknown method '{given}': did you mean '{meant}'"):
        alone("causal lm", given, "a cat")


def test_hyphens_are_underscores():
    assert alone("causal lm", "raw-attention", "a cat").method == "raw_attention"


def test_list_methods():
    assert attlas.list_methods() == NAMES

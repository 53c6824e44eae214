"""A question that was only posed: its target is found by the first pass over it."""

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, ask, subject
from tiny import TASKS

import attlas
from attlas.checking import FEW_STEPS
from attlas.errors import UsageError
from attlas.methods import METHODS
from attlas.models.asking.reading import attention_gradients, fold_attention
from attlas.models.asking.scores import own_scores_in_graph, target_scores
from attlas.models.encoding.request import Request

TASK = "sequence classification"


@pytest.fixture
def runs():
    """How often the model of the task has run since it was opened."""
    one = subject(TASK)
    ask(TASK)  # what is found once for a model is found before anything is counted
    counted = []
    handle = one.model.register_forward_pre_hook(lambda *_: counted.append(1))
    yield counted
    handle.remove()


def posed(task, text=None):
    (question,) = subject(task).pose([TEXTS[task][0] if text is None else text], Request())
    return question


def test_posing_does_not_run_the_model(runs):
    question = posed(TASK)
    assert not runs and not question.is_answered


def test_what_is_needed_early_is_asked_for_once(runs):
    expected, question = ask(TASK).targets, posed(TASK)
    runs.clear()
    assert question.targets == expected
    assert question.predictions and question.known_scores
    assert len(runs) == 1


@pytest.mark.parametrize("task", TASKS)
def test_the_first_pass_finds_what_asking_finds(task):
    request = Request(**ASKED.get(task, {}))
    (late,) = subject(task).pose([TEXTS[task][0]], request)
    (early,) = subject(task).ask([TEXTS[task][0]], request)
    with torch.no_grad():
        scores = own_scores_in_graph(late, "logit")
    assert late.is_answered and late.targets == early.targets
    assert float(scores) == pytest.approx(float(target_scores(early, "logit")), abs=1e-5)
    for found, expected in zip(late.known_scores, early.known_scores, strict=True):
        assert found == pytest.approx(expected, abs=1e-5)
    assert late.notes(0) == early.notes(0)


def test_rows_share_what_was_found(runs):
    (question,) = subject(TASK).pose(["the film was good", "the film was bad"], Request())
    fold_attention(question.rows([1]), lambda _: None)
    fold_attention(question.rows([0]), lambda _: None)
    assert question.is_answered and len(runs) == 2


def test_an_edited_pass_does_not_decide_the_target():
    question = posed(TASK)
    score = target_scores(question, "logit", attlas.edits.uniform())
    assert question.targets == ask(TASK).targets
    assert float(score) != pytest.approx(question.known_scores[0]["logit"], abs=1e-4)


def test_an_edited_gradient_does_not_decide_the_target():
    question = posed(TASK)
    attention_gradients(question, "logit", attlas.edits.uniform())
    assert question.targets == ask(TASK).targets


def test_other_inputs_keep_the_target_of_the_first():
    question, other = posed(TASK), ask(TASK, "the cat sat on the mat")
    assert question.about(other.inputs).targets == ask(TASK).targets


def test_a_wrong_target_is_told_from_within_the_pass():
    with pytest.raises(UsageError, match="unknown class 9"):
        attlas.explain(subject(TASK), "the film was good", "raw_attention", target=9)
    assert len(attlas.explain(subject(TASK), "the film was good", "raw_attention").scores)


@pytest.mark.parametrize("method", [each for each in METHODS if each.passes], ids=lambda m: m.name)
@pytest.mark.parametrize("maps", [None, False])
def test_the_model_runs_as_often_as_the_method_says(method, maps, runs):
    text = "the film was good"
    options = {name: value for name, value in FEW_STEPS.items() if name in method.options}
    attlas.explain(subject(TASK), text, method.name, maps=maps, **options)  # checks once a model
    runs.clear()
    attlas.explain(subject(TASK), text, method.name, maps=maps, **options)
    assert len(runs) == method.passes


def test_only_what_depends_on_the_text_leaves_open_how_often_the_model_runs():
    points = {"attattr", "integrated_gradients", "hidden_token_attribution"}
    removals = {"kernel_shap", "leave_one_out", "lime"}
    assert {each.name for each in METHODS if each.passes is None} == points | removals


# Lists


@pytest.mark.parametrize("method", [each for each in METHODS if each.fills], ids=lambda m: m.name)
def test_texts_of_a_list_get_what_each_gets_alone(method):
    texts = ["the film was good", "the film", "the film was not good at all", "the cat sat"]
    options = {name: value for name, value in FEW_STEPS.items() if name in method.options}
    together = attlas.explain(subject(TASK), texts, method.name, **options)
    for text, found in zip(texts, together, strict=True):
        alone = attlas.explain(subject(TASK), text, method.name, **options)
        assert found.tokens == alone.tokens and found.target.name == alone.target.name
        size = np.abs(alone.scores).max()
        np.testing.assert_allclose(found.scores, alone.scores, atol=2e-5 * size, rtol=0)
        if alone.maps is not None:
            for site, map_alone in zip(alone.maps.sites, alone.maps.weights, strict=True):
                largest = max(np.abs(map_alone).max(), 1e-6)
                own = found.maps[site.name]
                np.testing.assert_allclose(own, map_alone, atol=2e-5 * largest, rtol=0)


def test_a_list_of_near_lengths_is_one_batch(runs):
    texts = ["a cat sat", "a cat sat a", "a cat sat a a"]
    attlas.explain(subject(TASK), texts, "raw_attention")
    runs.clear()
    attlas.explain(subject(TASK), texts, "raw_attention")
    assert len(runs) == 1

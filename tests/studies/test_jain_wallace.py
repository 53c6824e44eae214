"""The study of Jain and Wallace: importances, permutation and claims, against definitions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from studies.recurrent_models import TEXTS, trained

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.mathematics.other_weights import AdversaryPlan
from attlas.models.recurrent.learning import labelled_table
from attlas.studies.recurrent import explanation_figures as figures
from attlas.studies.recurrent.causes import CAUSES, averaged_loss
from attlas.studies.recurrent.explanation_tables import _quality, claims_of
from attlas.studies.recurrent.readings import (
    gradient_importance,
    gradient_size,
    leave_one_out,
    readings,
)
from attlas.studies.recurrent.tasks import read_task
from attlas.studies.recurrent.training import ModelRecipe, shaped


def reading_of(found):
    (reading,) = readings(found.model, found.test)
    return reading


@pytest.mark.parametrize("encoder", ["bilstm", "average"])
def test_the_gradient_is_the_slope_along_each_vector_with_fixed_attention(encoder):
    found = trained(encoder)
    model = found.model.double()
    try:
        reading = reading_of(found)
        importance = gradient_importance(model, reading.batch)
        size = gradient_size(model, reading.batch)
        vectors = model.vectors(reading.batch.input_ids)
        step = 1e-5

        def sure(moved):
            states = model.encode(**reading.batch.arguments, inputs_embeds=moved)
            answer = model.read(states, reading.weights).softmax(dim=-1)
            return answer.gather(1, reading.predicted[:, None])[:, 0]

        for token in range(vectors.shape[1]):
            along = torch.zeros_like(vectors)
            along[:, token] = vectors[:, token]
            slope = (sure(vectors + step * along) - sure(vectors - step * along)) / (2 * step)
            torch.testing.assert_close(importance[:, token], slope.abs(), atol=1e-8, rtol=1e-4)
        # The slope along a vector is at most its length times that of the gradient.
        assert (importance <= size * vectors.norm(dim=-1) + 1e-9).all()
    finally:
        model.float()


def test_leave_one_out_is_the_answer_to_the_text_without_the_word():
    found = trained()
    reading = reading_of(found)
    importance = leave_one_out(found.model, reading, found.pad)
    for row, number in enumerate(reading.batch.numbers.tolist()):
        words = TEXTS[number][0].split()
        for place in range(len(words)):
            shorter = " ".join(words[:place] + words[place + 1 :])
            ids = found.tokenizer(shorter, return_tensors="pt")["input_ids"]
            sure = found.model(input_ids=ids).logits.softmax(dim=-1)[0]
            expected = (sure - reading.clean[row]).abs().sum() / 2
            torch.testing.assert_close(importance[row, place + 1], expected, atol=1e-6, rtol=1e-4)
        assert (importance[row][~reading.free[row]] == 0).all()


def test_the_median_change_is_that_over_all_orders():
    found = trained()
    reading = reading_of(found)
    change = figures.permutation_change(reading, 4001, torch.Generator().manual_seed(0))
    row = reading.free.sum(dim=-1).argmin()  # three words, six orders
    from itertools import permutations

    places = reading.free[row].nonzero()[:, 0]
    every = []
    for order in permutations(range(3)):
        moved = reading.weights.clone()
        moved[row, places] = reading.weights[row, places[list(order)]]
        answer = reading.answer(moved[None])[0, row]
        every.append(float((answer - reading.clean[row]).abs().sum() / 2))
    middle = sorted(every)[2:4]  # six orders: the median of many draws falls on one of these two
    assert middle[0] - 1e-6 <= change[row] <= middle[1] + 1e-6


def test_all_figures_of_a_model_are_by_the_number_of_the_text():
    found = trained()
    plan = figures.ExplanationPlan(5, AdversaryPlan(steps=3))
    made = figures.explanation_figures(found, plan)
    reading = reading_of(found)
    for row, number in enumerate(reading.batch.numbers.tolist()):
        assert made["texts"][figures.LARGEST][number] == pytest.approx(
            float(reading.largest[row]), abs=1e-4
        )
    assert set(map(len, made["texts"].values())) == {len(TEXTS)}
    assert made["classes"] == 2 and made["accuracy"] == 0.5


@pytest.mark.parametrize("word", ["and", "never-seen"])
def test_the_text_that_is_shown_has_no_unknown_words(word):
    found = trained()
    long = f"a warm and funny film , long and cold {word} good"
    table = labelled_table(found.model, found.tokenizer, [TEXTS[0], (long, "yes")])
    plan = figures.ExplanationPlan(5, AdversaryPlan(steps=3), removes=False)
    shown = figures.explanation_figures(replace(found, test=table), plan)["example"]
    assert (shown is None) == (word == "never-seen")
    assert shown is None or " ".join(shown["tokens"]) == long


def column(**texts):
    return {"classes": 2, "accuracy": 0.81, "auc": 0.9, "texts": texts, "example": None}


def test_bins_of_the_largest_weight_hold_their_lower_edge_and_the_last_both():
    part = column(**{figures.LARGEST: [0.0, 0.25, 0.49, 0.5, 1.0], "x": [1.0, 2.0, None, 4.0, 5.0]})
    found = figures.by_largest(part, "x", (0.0, 0.25, 0.5, 0.75, 1.0))
    assert [each.tolist() for each in found] == [[1.0], [2.0], [4.0], [5.0]]


def test_means_leave_out_what_is_unknown_and_keep_classes_apart():
    part = column(predicted=[0, 0, 1, 1], x=[1.0, 3.0, 10.0, None])
    assert figures.mean_of(part, "x") == pytest.approx(14 / 3)
    assert [figures.mean_of(part, "x", each) for each in (0, 1)] == [2.0, 10.0]
    assert np.isnan(figures.mean_of(part, "x", 2))


def model(tau, change, far=0.49):
    names = {
        figures.TAU_GRADIENT: tau,
        figures.TAU_REMOVAL: 0.3,
        figures.TAU_BOTH: 0.6,
        figures.CHANGE: change,
        figures.FAR_LOOSE: far,
    }
    return column(predicted=[0, 1], **{name: [each, each] for name, each in names.items()})


def verdicts(bilstm, average):
    parts = {("sst", "bilstm", "additive"): bilstm, ("sst", "average", "additive"): average}
    return {claim.said: claim.verdict for claim in claims_of(parts, "sst")}


def test_claims_hold_on_models_as_published_and_fail_on_others():
    said = verdicts([model(0.35, 0.03)] * 3, [model(0.6, 0.16)] * 3)
    assert set(said.values()) == {"reproduced"}
    other = verdicts([model(0.6, 0.16, 0.1)] * 3, [model(0.3, 0.16)] * 3)
    failed = [name for name, verdict in other.items() if verdict == "not reproduced"]
    assert len(failed) == 7 and "Permutation moves the average encoder" in " ".join(failed)


def test_tables_and_claims_use_one_word_for_a_figure():
    parts = {("sst", "bilstm", "additive"): [model(0.35, 0.03)] * 3}
    accuracy, area = _quality(parts).rows
    assert (accuracy.name, area.name) == tuple(
        f"sst, bilstm, additive: {name}" for name in ("accuracy", "AUC")
    )
    assert area.ours.value == pytest.approx(0.9)
    assert "auc" not in " ".join(each.said for each in claims_of(parts, "sst"))


def test_a_weaker_agreement_than_published_is_said_to_be_weaker():
    said = verdicts([model(0.1, 0.03)] * 3, [model(0.6, 0.16)] * 3)
    assert said["How weakly: τ with the gradient is about 0.35."] == "not reproduced"
    assert said["In a BiLSTM, attention agrees only weakly with the gradient."] == "reproduced"


def test_vectors_take_the_shape_that_a_cause_wants():
    vectors = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], dtype=np.float32)
    recipe = ModelRecipe()
    short = shaped(vectors, CAUSES["short_vectors"].change(recipe))
    np.testing.assert_allclose(short, vectors / 4)
    even = shaped(vectors, CAUSES["even_vectors"].change(recipe))
    np.testing.assert_allclose(np.linalg.norm(even, axis=1), [0.0, 3.0, 3.0])


def test_the_averaged_loss_is_the_sum_divided_by_the_texts():
    from attlas.models.recurrent.fitting import balanced_weight, label_loss

    task, found = read_task("reviews"), trained()
    batch = found.test.batch([0, 1, 2])
    numbers = [task.labels.index(label) for _, label in task.train]
    summed = label_loss(balanced_weight(numbers))(found.model, batch)
    torch.testing.assert_close(averaged_loss(task)(found.model, batch), summed / 3)


def test_tasks_keep_training_and_testing_apart():
    for name in ("reviews", "facts"):
        task = read_task(name, train_on=60, count=20)
        train, dev, test = (
            {text for text, _ in each} for each in (task.train, task.dev, task.test)
        )
        assert not train & test and not train & dev
        assert {label for _, label in task.test} <= set(task.labels)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"data": ("sst3",)}, "task"),
        ({"encoder": ("gru",)}, "encoder"),
        ({"causes": ("x",)}, "cause"),
    ],
)
def test_a_wrong_word_is_named(given, named):
    with pytest.raises(UnknownNameError, match=f"unknown {named}"):
        attlas.study("jain_wallace", quick=True, **given)


def test_vectors_that_are_not_there_are_named(tmp_path):
    with pytest.raises(UsageError, match="there are no word vectors"):
        attlas.study("jain_wallace", quick=True, vectors=str(tmp_path / "none"))

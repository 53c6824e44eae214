"""The study of the poster: its rules on planted figures, and its measures on known models."""

import pytest
from known_models import copies_attended, ignores_attention

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.studies.poster import claims_on, drops
from attlas.studies.support.key_measures import freedom, measure_keys

ADVERSARY = {"epochs": 1, "alpha": 0.5}


def seed(lost, above, agreement=1.0, loss=-0.1, widths=(6.0, 4.0), first=(0.6, 0.1), gain=0.02):
    """What one seed found: the first layer loses `lost`, the second `above`."""
    right = {
        "right as it is": 0.9,
        "right, all layers": 0.9 - lost,
        "right, layer 0": 0.9 - lost,
        "right, layer 1": 0.9 - above,
    }
    adversarial = {
        "accuracy": 0.9,
        "accuracy, adversarial": 0.9 + gain,
        "agreement": agreement,
        "change of the loss": loss,
        "distance of the keys": 1.0,
        "keys attended to": widths[0],
        "keys attended to, adversarial": widths[1],
    }
    rows = [[10, 8, 2, 3], [6, 8, 0, 0]]
    return {"right": right, "adversarial": adversarial, "freedom": rows, "first layer": first}


def verdicts(*seeds):
    return [claim.verdict for claim in claims_on(seeds)]


def test_what_the_poster_says_is_reproduced_if_it_comes_out():
    assert verdicts(seed(0.06, 0.0), seed(0.07, 0.005)) == ["reproduced"] * 9


def test_what_does_not_come_out_is_not():
    found = seed(0.4, 0.2, 0.5, loss=0.3, widths=(4.0, 6.0), first=(0.1, 0.6), gain=0.0)
    found["freedom"] = [[10, 8, 1, 1], [6, 8, 0, 1]]  # below the bound: it cannot be
    assert verdicts(found) == ["not reproduced"] * 9


def test_losses_are_of_accuracy():
    assert drops(seed(0.3, 0.1)) == pytest.approx(
        {"all layers": 0.3, "layer 0": 0.3, "layer 1": 0.1}
    )


def test_the_null_space_of_values_that_are_known():
    (question,) = copies_attended().ask(["GOOD bad bad"])
    # Five tokens; the values of one head have one direction, those of the other none.
    assert freedom(question) == [[5, 4, 4, 5]]


def test_a_model_that_ignores_its_attention_loses_nothing():
    words = ["good bad bad", "bad good fine", "fine good good", "bad bad fine"]
    labels = ["NEGATIVE", "POSITIVE", "POSITIVE", "NEGATIVE"]
    examples = [Example(text, label) for text, label in zip(words, labels, strict=True)]
    found = measure_keys(ignores_attention(), examples, 0, 3, ADVERSARY)
    assert set(drops(found).values()) == {0.0}
    assert found["adversarial"]["agreement"] == 1


def test_texts_need_labels_that_the_model_knows():
    with pytest.raises(UsageError, match="none of the texts has a label"):
        measure_keys(ignores_attention(), [Example("good", "GREAT")], 0, 3, ADVERSARY)

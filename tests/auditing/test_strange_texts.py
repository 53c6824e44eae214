"""What a report advises where texts without some tokens are strange to the model."""

import pandas as pd
import pytest

from attlas.auditing.collected import Collected, StrangeTexts
from attlas.auditing.report.plots import make_unusual

USUAL, STRANGE, UNSURE = [0.5] * 20, [0.9] * 20, [0.45, 1.0] * 10  # means: .5, .9, .72


def advised(**values):
    """By removal, the remedy for texts with these figures."""
    unusual = [StrangeTexts(each, pd.Series(own), "words") for each, own in values.items()]
    tables = [pd.DataFrame()] * 5
    collected = Collected(*tables, groups=None, seed=0, unusual=unusual)
    return {each.removal: each.remedy for each in make_unusual(collected)}


def test_where_no_removal_is_strange_nothing_is_advised():
    assert advised(delete=USUAL, mask=USUAL) == {"delete": "", "mask": ""}


@pytest.mark.parametrize(
    ("others", "trusted"),
    [({"delete": USUAL}, "trust delete more, or "), ({"delete": STRANGE}, ""), ({}, "")],
)
def test_masked_fine_tuning_is_advised_where_masked_texts_are_strange(others, trusted):
    remedy = advised(mask=STRANGE, **others)["mask"]
    assert remedy == (
        f"such texts are strange to this model: {trusted}fine-tune the model with random words "
        "masked and audit it by mask (attlas audit --masked-finetune DATA)"
    )


def test_what_is_not_surely_strange_is_left_alone():
    assert advised(mask=UNSURE) == {"mask": ""}

"""How much there is to find in a text does not depend on its length."""

import pytest
from known_models import bag_of_words

from attlas.auditing.plan import plan_audit
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import explain_batch
from attlas.auditing.work.figures import measure_batch
from attlas.auditing.work.where import BEST, LOCATION

WEIGHT = 3.0  # of the one word that matters: it moves the answer from .5 to 1 / (1 + exp(-2 · 3))
MOVES = 0.4975  # up to the noise of words that go with it


@pytest.mark.parametrize("count", [20, 130])
def test_one_word_that_matters_is_all_there_is_to_find_however_long_the_text(count):
    subject = bag_of_words({"good": WEIGHT, "the": 0.0, "a": 0.0})
    texts = ["good" + " the" * (count - 1), "a " * (count - 1) + "good"]
    plan = plan_audit(subject, texts, ["raw_attention"], ["location"], [], removal=["mask"])
    found = measure_batch(explain_batch(plan, [0, 1], Drafts()), plan, Drafts()).where
    best = found[found["kind"] == BEST]
    assert len(best) == 4
    assert best["value"].to_numpy() == pytest.approx([MOVES] * 4, rel=0.35)
    first = found[(found["kind"] == LOCATION) & (found["name"] == "position")]
    expected = {0: MOVES, 1: -MOVES}
    for _, row in first.iterrows():
        assert row["value"] == pytest.approx(expected[row["text"]], rel=0.35)

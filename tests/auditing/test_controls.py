"""Scores that are made from the text alone say of each token how early it comes, by their size."""

import numpy as np
from known_models import bag_of_words

from attlas.auditing.plan import plan_audit
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import FREQUENCY, POSITION, explain_batch
from attlas.mathematics.token_effects import precedence

TEXTS = ["w00 w01 w02 w01", "w03 w00 w01 w01"]


def verdicts_controls():
    plan = plan_audit(bag_of_words(), TEXTS, ["raw_attention"], ["location"], [])
    return [text.verdict for text in explain_batch(plan, [0, 1], Drafts()).texts]


def test_the_first_tokens_come_first():
    for controls in verdicts_controls():
        np.testing.assert_allclose(precedence(controls[POSITION]), [1, 1 / 3, -1 / 3, -1])


def test_the_rarest_tokens_come_first():
    one, other = (precedence(controls[FREQUENCY]) for controls in verdicts_controls())
    np.testing.assert_allclose(
        one, [1 / 3, -2 / 3, 1, -2 / 3]
    )  # w02 once, w00 twice, w01 four times
    np.testing.assert_allclose(other, [1, 1 / 3, -2 / 3, -2 / 3])

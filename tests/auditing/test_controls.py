"""Scores that are made from the text alone say of each token how early it comes, by their size."""

import numpy as np
import pandas as pd
from known_models import bag_of_words

from attlas.auditing.collected import Collected
from attlas.auditing.plan import plan_audit
from attlas.auditing.work import explained
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import FREQUENCY, FROM_MASK, FROM_ZERO, POSITION, explain_batch
from attlas.auditing.work.where import WHERE
from attlas.mathematics.token_effects import precedence
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS

ROUGH = {"most": 3, "tolerance": 1e-9}  # cannot be met
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


def test_scores_that_are_not_converged_are_no_reference(monkeypatch):
    rough = Recipe(METHODS["integrated_gradients"], {"baseline": "zero", **ROUGH})
    monkeypatch.setitem(explained._VERDICT, FROM_ZERO, rough)
    plan = plan_audit(bag_of_words(), TEXTS, ["raw_attention"], ["location"], [])
    found = explain_batch(plan, [0, 1], Drafts())
    assert found.refused[FROM_ZERO].startswith("on some texts not converged: with 9 points")
    assert all(FROM_ZERO not in each.verdict and FROM_MASK in each.verdict for each in found.texts)


def test_a_reference_that_was_left_out_on_some_texts_is_none_of_the_verdict():
    nothing = pd.DataFrame(columns=["method", "measure", "removal"])
    where = pd.DataFrame(columns=list(WHERE))
    tested = Collected(nothing, nothing, nothing, nothing, where, None, 0, {FROM_ZERO: "why"})
    assert FROM_ZERO not in tested.tested().roles.references
    assert FROM_MASK in tested.tested().roles.references

"""Fused attention: taken only where it is the module's own, and never for what it does not know."""

import pytest
import tiny
import torch

from attlas.models.tap import opening
from attlas.models.tap.opening import tap

NEVER = {"gemma2", "gpt_oss"}  # a soft cap, sinks


def logits(case):
    with torch.no_grad():
        output = case.model(**case.inputs)
    return output.logits_per_image if hasattr(output, "logits_per_image") else output.logits


@pytest.mark.parametrize("family", sorted(tiny.FAMILIES))
def test_what_passes_through_is_fused_once_it_is_proven(family, monkeypatch):
    case = tiny.FAMILIES[family]()
    with tap(case.model):
        expected = logits(case)
    ran = []
    own = opening.run_eager
    monkeypatch.setattr(opening, "run_eager", lambda *a, **k: ran.append(None) or own(*a, **k))
    with tap(case.model, wants=lambda site: False) as seen:
        logits(case)
    proving = len(ran)
    with tap(case.model, wants=lambda site: False):
        torch.testing.assert_close(logits(case), expected, atol=2e-5, rtol=2e-5)
    assert seen.calls == []
    assert proving > 0
    assert (len(ran) - proving > 0) == (family in NEVER)


def test_a_soft_cap_that_does_not_show_yet_is_not_fused():
    """Small scores do not feel the cap: a comparison alone would let it through."""
    case = tiny.FAMILIES["gemma2"]()
    projections = [layer.self_attn.q_proj for layer in case.model.model.layers]
    with torch.no_grad():
        for projection in projections:
            projection.weight.mul_(1e-3)
        with tap(case.model, wants=lambda site: False):
            logits(case)
        for projection in projections:
            projection.weight.mul_(4e4)
    with tap(case.model):
        expected = logits(case)
    with tap(case.model, wants=lambda site: site.layer == 1):
        assert torch.equal(logits(case), expected)

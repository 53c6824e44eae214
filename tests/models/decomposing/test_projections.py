"""Attention taken apart by key: the parts sum to what each family's own projection gave."""

from types import SimpleNamespace

import pytest
import torch
import transformers
from subjects import ask
from tiny import FAMILIES, SECOND_ROAD, TEXT, TOWER
from torch import nn

from attlas.errors import UnsupportedModelError
from attlas.models.decomposing.projections import (
    Projected,
    ProjectionWatch,
    fold_projected,
    linear_norm,
    matrix_of,
)
from attlas.models.tap.opening import tap

# Families whose stream is not simply added to what attention gives: in parallel with the rest of
# the block, behind a norm of its own, or scaled.
STREAM_APART = {"gpt_neox", "cohere2", "gemma2", "olmo2", "granite"}
NORM_LAST = {
    *("bert", "roberta", "xlm_roberta", "camembert", "distilbert", "albert", "electra"),
    *("bart", "marian"),
}


def watched(case):
    watch = ProjectionWatch(case.model, lambda found: found)

    def keep(call):
        watch.meet(call)
        return call

    with torch.no_grad(), watch.entered(), tap(case.model, keep=keep):
        case.model(**case.inputs)
    return watch.held


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"t5gemma2"}))
def test_the_parts_sum_to_the_output(family):
    case = FAMILIES[family]()
    found = watched(case)
    assert len(found) == case.sites
    for each in found:
        total = each.terms().sum(dim=2) + each.bias
        torch.testing.assert_close(total, each.output, atol=1e-5, rtol=1e-4)
        assert (each.stream is None) == (family in STREAM_APART)
        assert (each.norm is not None) == (family in NORM_LAST)
    assert not any(module._forward_hooks for module in case.model.modules())


def test_values_that_two_sites_mix_together_are_refused():
    with pytest.raises(UnsupportedModelError, match="does not pass the mixed values"):
        watched(FAMILIES["t5gemma2"]())


# XLNet projects by a product that is no linear module.
@pytest.mark.parametrize("family", sorted(SECOND_ROAD.keys() - {"xlnet"}))
def test_the_parts_sum_to_the_output_where_a_family_mixes_by_itself(family):
    case = SECOND_ROAD[family]()
    found = watched(case)
    assert len(found) == case.sites
    for each in found:
        total = each.terms().sum(dim=2) + each.bias
        torch.testing.assert_close(total, each.output, atol=1e-5, rtol=1e-4)


def test_attention_in_blocks_hides_its_values():
    config = transformers.BigBirdConfig(
        **TEXT, **TOWER, block_size=2, num_random_blocks=1, max_position_embeddings=64
    )
    case = SimpleNamespace(
        model=transformers.BigBirdForMaskedLM(config).eval(),
        inputs={"input_ids": torch.arange(5, 29)[None]},
    )
    with pytest.raises(UnsupportedModelError, match="computes its attention itself"):
        watched(case)


def test_the_stream_and_the_norm_are_berts_own():
    case = FAMILIES["bert"]()
    with torch.no_grad():
        states = case.model(**case.inputs, output_hidden_states=True).hidden_states
        for each, state, layer in zip(
            watched(case), states[:-1], case.model.bert.encoder.layer, strict=True
        ):
            torch.testing.assert_close(each.stream, state)
            expected = layer.attention(state)[0]
            whole = each.output + each.stream
            found = each.norm.apart_from_spread(whole) / each.norm.spread + each.norm.shift
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_parts_of_some_queries():
    (found, *_) = watched(FAMILIES["llama"]())
    whole = found.terms()
    torch.testing.assert_close(found.terms(slice(2, 5)), whole[:, 2:5])
    own = whole.diagonal(dim1=1, dim2=2).transpose(1, 2)
    torch.testing.assert_close(found.own_terms(), own)


def test_a_question_is_folded_in_order():
    found = fold_projected(ask("sequence classification"), lambda each: each)
    assert [each.site.name for each in found.held] == ["encoder.0", "encoder.1"]
    assert all(isinstance(each, Projected) for each in found.held)
    assert found.readout[0, 0] == 1


def test_the_matrix_of_a_module_that_keeps_it_in_its_own_way():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 5))

        def forward(self, given):
            return given @ self.weight + 1

    module = Turned()
    matrix, bias = matrix_of(module, torch.zeros(1, 2, 3))
    torch.testing.assert_close(matrix, module.weight.detach(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(bias, torch.ones(5))


def test_only_a_layer_norm_is_one():
    given = torch.randn(2, 3, 8)
    rms = nn.RMSNorm(8, eps=1e-6)
    assert linear_norm(rms, given, rms(given)) is None
    norm = nn.LayerNorm(8)
    assert linear_norm(norm, given, norm(given)) is not None

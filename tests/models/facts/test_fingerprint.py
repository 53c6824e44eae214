"""fingerprint: any change of the weights is seen, and nothing else is."""

import copy

import pytest
import torch
from torch import nn

from attlas.models.facts.fingerprint import fingerprint


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 9), nn.BatchNorm1d(9), nn.Linear(9, 2))


def test_equal_weights_have_one_name(model):
    other = copy.deepcopy(model).eval()
    turned = other[0].weight.detach().t().contiguous().t()
    assert not turned.is_contiguous()
    other[0].weight = nn.Parameter(turned, requires_grad=False)
    assert fingerprint(other) == fingerprint(model)


def test_the_smallest_change_of_any_value_is_seen(model):
    before = fingerprint(model)
    seen = set()
    for tensor in model.state_dict().values():
        flat = tensor.view(-1)
        for place in range(flat.numel()):
            value = flat[place].clone()
            more = value + 1 if not tensor.is_floating_point() else value.nextafter(value + 1)
            flat[place] = more
            seen.add(fingerprint(model))
            flat[place] = value
    assert fingerprint(model) == before
    assert before not in seen
    assert len(seen) == sum(tensor.numel() for tensor in model.state_dict().values())


def test_values_that_change_places_are_seen(model):
    before, seen = fingerprint(model), set()
    flat = model[0].weight.data.view(-1)
    for place in range(1, flat.numel()):
        flat[[0, place]] = flat[[place, 0]]
        seen.add(fingerprint(model))
        flat[[0, place]] = flat[[place, 0]]
    assert before not in seen
    assert len(seen) == flat.numel() - 1
    assert fingerprint(model) == before


def test_names_and_shapes_and_types_are_seen(model):
    others = [
        nn.Sequential(*model, nn.ReLU()),  # the same weights: another only by its operations
        nn.Sequential(nn.ReLU(), *model),
        nn.ModuleList(model),
        copy.deepcopy(model).double(),
        copy.deepcopy(model).half(),
    ]
    prints = [fingerprint(other) for other in (model, *others)]
    assert prints[1] == prints[0]  # it is of the weights alone
    assert len(set(prints)) == 5


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.complex64]
)
def test_every_type_can_be_read(dtype):
    module = nn.Module()
    module.register_buffer("held", torch.zeros(3, 2).to(dtype))
    module.register_buffer("one", torch.zeros(()).to(dtype))
    module.register_buffer("none", torch.zeros(0, 4).to(dtype))
    before = fingerprint(module)
    module.held[1, 1] = 1
    assert fingerprint(module) != before


def test_what_is_not_in_memory():
    before = fingerprint(nn.Linear(3, 2, device="meta"))
    assert before == fingerprint(nn.Linear(3, 2, device="meta"))
    assert before != fingerprint(nn.Linear(3, 3, device="meta"))

"""The positive contributions of a linear layer, some outputs at a time, against all at once."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attlas.models.relevance import backward_steps
from attlas.models.relevance.backward_steps import TINY, through_positive

TOKENS, INPUTS, OUTPUTS = 3, 8, 40


class Largest(TorchDispatchMode):
    """Notes the most numbers that a new tensor has."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        found = operator(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not operator.is_view:
            self.numbers = max(self.numbers, found.numel())
        return found


def drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def by_definition(given, weight, relevance):
    """Each input's positive products, as shares of those of its output."""
    products = (given[..., None, :] * weight).clamp(min=0)  # `[…, output, input]`
    return (products / (products.sum(-1, keepdim=True) + TINY) * relevance[..., None]).sum(-2)


def test_no_half_of_a_whole_weight_is_made(monkeypatch):
    monkeypatch.setitem(backward_steps.BYTES_AT_ONCE, "cpu", 8 * INPUTS * 6)  # six outputs
    given, weight = drawn(1, TOKENS, INPUTS, seed=0), drawn(OUTPUTS, INPUTS, seed=1)
    relevance = drawn(1, TOKENS, OUTPUTS, seed=2)
    with Largest() as made:
        found = through_positive(given, weight, relevance)
    torch.testing.assert_close(found, by_definition(given, weight, relevance))
    assert made.numbers <= 6 * INPUTS

"""Mixing: how each hidden state, and what each head gives, moves with the vectors of all tokens.

The model runs on copies of one input, in each of which another position is followed in another
direction. A pass up serves every layer, and one down from each layer gives the sizes there.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.states.embeddings import Entrance, entering, over_tokens
from attlas.models.states.jacobian import streams
from attlas.models.states.stack_states import rows_first
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import Directions

Followed = Callable[[Question, Tensor], list[Tensor]]  # copies, their numbers → `[copy, feature]`


def state_gains(question: Question, positions: Sequence[int], directions: Directions) -> Tensor:
    """What each token's vector does to the state at some positions: `[layer, position, token]`.

    It is the squared length, summed over the directions. The question has one row; the layers are
    those of the stack that is read out.
    """
    places = torch.tensor(list(positions))

    def states(copies: Question, numbers: Tensor) -> list[Tensor]:
        with streams(question.subject) as kept:
            run_logits(copies)
        at = places[numbers // len(directions)]
        return [rows_first(question, each)[torch.arange(len(at)), at] for each in kept]

    found = _follow(question, states, directions, len(places) * len(directions))
    return torch.stack([each.unflatten(0, (len(places), -1)).sum(dim=1) for each in found])


def head_gains(
    question: Question,
    positions: Sequence[int],
    directions: Directions,
    sites: Sequence[Site],
) -> list[Tensor]:
    """What each token's vector does to what a head mixes, of each site `[head, position, token]`.

    As for `state_gains`; the directions are those of the values that a head mixes.
    """
    places, heads = torch.tensor(list(positions)), max(site.heads for site in sites)

    def outputs(copies: Question, numbers: Tensor) -> list[Tensor]:
        held: list[tuple[Tensor, Tensor]]
        with question.subject.folding(_both, sites) as held:
            run_logits(copies)
        each = numbers // len(directions)
        return [_mixed(*pair, each % heads, places[each // heads]) for pair in held]

    found = _follow(question, outputs, directions, len(places) * heads * len(directions))
    shaped = [each.unflatten(0, (len(places), heads, -1)).sum(dim=2) for each in found]
    pairs = zip(shaped, sites, strict=True)
    return [each.transpose(0, 1)[: site.heads] for each, site in pairs]


def _follow(
    question: Question, followed: Followed, directions: Directions, count: int
) -> list[Tensor]:
    """Of each layer, what the tokens do to the state that each copy follows, `[copy, token]`."""
    length = len(question.inputs.tokens[0])
    too_large = f"{length} tokens do not fit; give a shorter text"
    step = rows_of(question.subject.device, length)

    def some(numbers: Sequence[int]) -> list[Tensor]:
        return _some(question, followed, directions, numbers)

    parts = [
        part
        for start in range(0, count, step)
        for part in in_fitting_batches(range(start, min(start + step, count)), some, too_large)
    ]
    return [torch.cat(each) for each in zip(*parts, strict=True)]


def _some(
    question: Question, followed: Followed, directions: Directions, numbers: Sequence[int]
) -> list[Tensor]:
    copies, index = question.rows([0] * len(numbers)), torch.tensor(list(numbers))
    with (
        torch.enable_grad(),
        evaluation_mode(question.subject.model),
        entering(question.subject, copies.inputs) as entrance,
    ):
        along = directions[index % len(directions)]
        return [
            _squares(copies, entrance, state, along[:, : state.shape[-1]].to(state))
            for state in followed(copies, index)
        ]


def _squares(copies: Question, entrance: Entrance, state: Tensor, along: Tensor) -> Tensor:
    gradients = torch.autograd.grad(
        (state * along).sum(), entrance.leaves, retain_graph=True, allow_unused=True
    )
    parts = [
        (each.start, each.gradient.float().square().sum(dim=-1))
        for each in entrance.entered(gradients)
    ]
    return over_tokens(copies.inputs, parts).cpu()


def _both(call: Call) -> tuple[Tensor, Tensor]:
    if call.values is None:
        raise UnsupportedModelError(
            f"the values that {call.path} mixes are not seen: this family writes its attention out "
            "by itself, so what its heads give is not known"
        )
    return call.weights, call.values


def _mixed(weights: Tensor, values: Tensor, head: Tensor, place: Tensor) -> Tensor:
    """What one head gives at one place in each copy, `[copy, width]`."""
    copies, own = torch.arange(len(head)), head.clamp_max(weights.shape[1] - 1)
    rows = weights[copies, own, place]
    return torch.einsum(
        "bk,bkw->bw", rows, values[copies, own // (weights.shape[1] // values.shape[1])]
    )

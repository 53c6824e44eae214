"""Jacobians: how hidden states and head outputs change with the vectors of the input tokens.

The model runs on copies of its inputs. In each copy, a backward pass computes the Jacobian for
another direction of the hidden state. The graph of one forward pass serves many backward passes.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.states.block_states import layer_outputs, rows_first
from attlas.models.states.embeddings import entering, over_tokens
from attlas.models.states.entrance import Entrance
from attlas.models.tap.call import Call
from attlas.models.tap.on_patches import states_on_patches
from attlas.results import Site
from attlas.shapes import Directions, QueryWeights, TokenSums

Place = tuple[int, int]  # a row of the question, and a position in the stack that is read out
Followed = Callable[
    [Question, Tensor], list[Tensor]
]  # (copies, their numbers) → `[copy, feature]` for each layer


def squared_gains(
    question: Question, readout: QueryWeights, layer: int, directions: Directions
) -> TokenSums:
    """The squared gradient of a hidden state on each token's vector, summed over directions.

    The question has one row. The state is that after `layer`, its positions weighted by `readout`.
    """

    def sum_over(numbers: Sequence[int]) -> TokenSums:
        return _sum_over(question, readout, layer, directions[list(numbers)])

    too_large = f"{len(question.inputs.tokens[0])} tokens do not fit; give a shorter text"
    sums = in_fitting_batches(range(len(directions)), sum_over, too_large, "directions")
    return torch.stack(list(sums)).sum(dim=0)


def width_of(question: Question, layer: int) -> int:
    """The number of features of the hidden states after a layer."""
    with (
        torch.no_grad(),
        evaluation_mode(question.subject.model),
        layer_outputs(question.subject) as found,
    ):
        run_logits(question.rows([0]))
    return int(_chosen(found, layer).shape[-1])


def _sum_over(
    question: Question, readout: QueryWeights, layer: int, directions: Directions
) -> TokenSums:
    question.subject.check_gradients()
    length = len(question.inputs.tokens[0])
    copies = min(len(directions), rows_of(question.subject.device, length))
    repeated = question.rows([0] * copies)
    with (
        torch.enable_grad(),
        evaluation_mode(question.subject.model),
        entering(question.subject, repeated.inputs) as entrance,
        layer_outputs(question.subject) as found,
    ):
        run_logits(repeated)
        state = _state(question, found, layer, readout)
        total = state.new_zeros(length, dtype=torch.float32)
        for chunk in directions.to(state).split(copies):
            along = (state[: len(chunk)] * chunk).sum()
            gradients = torch.autograd.grad(
                along, entrance.all_leaves(), retain_graph=True, allow_unused=True
            )
            squares = [
                (each.start, each.gradient.float().square().sum(dim=-1))
                for each in entrance.entered(gradients)
            ]
            total += over_tokens(question.inputs, squares).sum(dim=0)
    return total


def _state(
    question: Question, layers: Sequence[Tensor], layer: int, readout: QueryWeights
) -> Tensor:
    """The state after a layer, averaged over the positions that are read, `[copy, feature]`."""
    stream = _chosen(layers, layer)
    if stream.ndim != 3:
        raise UnsupportedModelError(
            f"layer {layer} hands on several streams, {tuple(stream.shape)}, so a position has no "
            "single state"
        )
    stream = states_on_patches(stream, question.subject.stages(question.inputs))
    if stream.shape[1] != readout.shape[1]:
        raise UnsupportedModelError(
            f"layer {layer} has {stream.shape[1]} positions, but the prediction is read from "
            f"{readout.shape[1]}, so they cannot be matched"
        )
    return torch.einsum("bqf,q->bf", stream, readout[0].to(stream))


def _chosen(layers: Sequence[Tensor], layer: int) -> Tensor:
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return layers[layer]


def state_gains(question: Question, places: Sequence[Place], directions: Directions) -> Tensor:
    """The squared gradient of the states at some places on each token's vector.

    The result is `[layer, place, token]`, summed over the directions; the layers are those of the
    stack that is read out.
    """
    rows, positions = torch.tensor(list(places)).unbind(dim=1)

    def states(copies: Question, numbers: Tensor) -> list[Tensor]:
        with layer_outputs(question.subject) as kept:
            run_logits(copies)
        at = positions[numbers // len(directions)]
        return [rows_first(question, each)[torch.arange(len(at)), at] for each in kept]

    copied = rows.repeat_interleave(len(directions)).tolist()
    found = _follow(question, states, directions, copied)
    return torch.stack([each.unflatten(0, (len(places), -1)).sum(dim=1) for each in found])


def head_gains(
    question: Question,
    places: Sequence[Place],
    directions: Directions,
    sites: Sequence[Site],
) -> list[Tensor]:
    """Like `state_gains`, for the values that each head mixes: `[head, place, token]` by site.

    The directions are in the space of a head's values.
    """
    rows, positions = torch.tensor(list(places)).unbind(dim=1)
    heads = max(site.heads for site in sites)

    def outputs(copies: Question, numbers: Tensor) -> list[Tensor]:
        held: list[tuple[Tensor, Tensor]]
        with question.subject.folding(_both, sites) as held:
            run_logits(copies)
        each = numbers // len(directions)
        return [_mixed(*pair, each % heads, positions[each // heads]) for pair in held]

    copied = rows.repeat_interleave(heads * len(directions)).tolist()
    found = _follow(question, outputs, directions, copied)
    shaped = [each.unflatten(0, (len(places), heads, -1)).sum(dim=2) for each in found]
    pairs = zip(shaped, sites, strict=True)
    return [each.transpose(0, 1)[: site.heads] for each, site in pairs]


def _follow(
    question: Question, followed: Followed, directions: Directions, copied: Sequence[int]
) -> list[Tensor]:
    """The squared gradients of the state that each copy follows, `[copy, token]` by layer.

    `copied` has the row of the question that each copy is of.
    """
    length = len(question.inputs.tokens[0])
    too_large = f"{length} tokens do not fit; give a shorter text"
    step = rows_of(question.subject.device, length)

    def work(numbers: Sequence[int]) -> list[Tensor]:
        copies = question.rows([copied[number] for number in numbers])
        return _squared_gradients(copies, followed, directions, torch.tensor(list(numbers)))

    batches = [
        batch
        for start in range(0, len(copied), step)
        for batch in in_fitting_batches(
            range(start, min(start + step, len(copied))), work, too_large, "directions"
        )
    ]
    return [torch.cat(each) for each in zip(*batches, strict=True)]


def _squared_gradients(
    copies: Question, followed: Followed, directions: Directions, numbers: Tensor
) -> list[Tensor]:
    copies.subject.check_gradients()
    with (
        torch.enable_grad(),
        evaluation_mode(copies.subject.model),
        entering(copies.subject, copies.inputs) as entrance,
    ):
        along = directions[numbers % len(directions)]
        return [
            _squares(copies, entrance, state, along[:, : state.shape[-1]].to(state))
            for state in followed(copies, numbers)
        ]


def _squares(copies: Question, entrance: Entrance, state: Tensor, along: Tensor) -> Tensor:
    gradients = torch.autograd.grad(
        (state * along).sum(), entrance.all_leaves(), retain_graph=True, allow_unused=True
    )
    squares = [
        (each.start, each.gradient.float().square().sum(dim=-1))
        for each in entrance.entered(gradients)
    ]
    return over_tokens(copies.inputs, squares).cpu()


def _both(call: Call) -> tuple[Tensor, Tensor]:
    if call.values is None:
        raise UnsupportedModelError(
            f"the values that {call.path} mixes are unknown: this family computes its attention "
            "itself, so the outputs of its heads cannot be read"
        )
    return call.weights, call.values


def _mixed(weights: Tensor, values: Tensor, head: Tensor, place: Tensor) -> Tensor:
    """The output of one head at one position in each copy, `[copy, width]`."""
    copies, own = torch.arange(len(head)), head.clamp_max(weights.shape[1] - 1)
    rows = weights[copies, own, place]
    return torch.einsum(
        "bk,bkw->bw", rows, values[copies, own // (weights.shape[1] // values.shape[1])]
    )

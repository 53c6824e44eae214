"""Projections: what each key adds to each query, through the values and the output projection.

A block passes the mixed values through one linear map, adds its own input and, in some families,
applies a norm. Where these are differs between families and is found by running: the projection is
the linear module that gets the mixed values, and the residual is what a norm behind it
finds added. A gate that the mixed values are multiplied by is held as it is. Every call checks that
the terms sum to what the model computed; if not, the family is refused.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attlas.errors import NotDefinedError, UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.asking.reading import Folded, fold_attention
from attlas.models.decomposing.gates import GateWatch, LinearNorm, are_close, is_norm, linear_norm
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode, merged_adapters
from attlas.models.facts.hooks import Hooks, hooking
from attlas.models.facts.sites import find_block
from attlas.models.loading.offloading import weight_of
from attlas.models.rows.handed import HandedCall
from attlas.models.rows.handing import Handover, hand_over
from attlas.models.tap.call import Call
from attlas.models.tap.eager_attention import mix
from attlas.results import Site

Held = TypeVar("Held")


@dataclass(frozen=True, eq=False)
class Projected:
    """One attention with its output projection: its output is a sum of terms, one for each key.

    What key j adds to query i is `z[i, j] = sum over heads of weights[h, i, j] * f[h, j]` with
    `f = through()`, and `z` summed over the keys, plus `bias`, is `output`. Where the model
    multiplies the mixed values of each query by a gate, so is each of the values that it mixed.
    """

    site: Site
    weights: Tensor  # `[batch, head, query, key]`; of no query where rows are computed again
    values: Tensor  # `[batch, head, key, width]`, with their own bias; grouped heads repeated
    matrix: Tensor  # `[head, width, feature]`: each head's slice of the output projection
    bias: Tensor  # `[feature]`, zero where the projection has none
    output: Tensor  # `[batch, query, feature]`, as the model computed it
    stream: Tensor | None = None  # the residual added to the output; None if not found
    norm: LinearNorm | None = None  # applied to the sum of both in post-norm families
    gate: Tensor | None = None  # `[batch, query, head, width]`; None if there is none
    own_weights: Tensor | None = None  # the diagonal of weights that are not held

    def through(self) -> Tensor:
        """The values through the slices of their heads, `[batch, head, key, feature]`."""
        return torch.einsum("bhkw,hwf->bhkf", self.values, self.matrix)

    def terms(self, queries: slice = slice(None)) -> Tensor:
        """What each key adds to these queries, `[batch, query, key, feature]`: n² vectors."""
        if self.gate is not None:
            return self.gated(queries).flatten(-2) @ self.matrix.flatten(0, 1)
        return torch.einsum("bhqk,bhkf->bqkf", self.weights[:, :, queries], self.through())

    def own_terms(self) -> Tensor:
        """What each position adds to itself, `[batch, query, feature]`, in self-attention."""
        diagonal = self.own_weights
        if diagonal is None:
            diagonal = self.weights.diagonal(dim1=-2, dim2=-1)
        if self.gate is not None:
            own = torch.einsum("bhk,bkhw,bhkw->bkhw", diagonal, self.gate, self.values)
        else:
            own = torch.einsum("bhk,bhkw->bkhw", diagonal, self.values)
        return own.flatten(-2) @ self.matrix.flatten(0, 1)

    def narrowed(self, weights: Tensor, rows: Tensor, keys: slice) -> "Projected":
        """Some query rows over some keys, with their weights."""
        gate = None if self.gate is None else self.gate[:, rows]
        return replace(self, weights=weights, values=self.values[:, :, keys], gate=gate)

    def gated(self, queries: slice = slice(None)) -> Tensor:
        """What a gate leaves of each weighted value, `[batch, query, key, head, width]`."""
        assert self.gate is not None
        weights, gate = self.weights[:, :, queries], self.gate[:, queries]
        return torch.einsum("bhqk,bqhw,bhkw->bqkhw", weights, gate, self.values)


def fold_projected(
    question: Question,
    keep: Callable[[Projected], Held],
    sites: Collection[Site] | None = None,
) -> Folded[Held]:
    """Like `fold_attention`, but `keep` gets each attention together with its output projection.

    `keep` is called when the block has returned, in the order of the calls. The tensors are in the
    model's precision, but at least float32.
    """
    watch = ProjectionWatch(question.subject.model, keep)
    model = question.subject.model
    with evaluation_mode(model), merged_adapters(model), watch.entered():
        readout = fold_attention(question, watch.meet, sites).readout
    return Folded(watch.held, readout)


def hand_over_projected(
    question: Question, sites: Collection[Site]
) -> tuple[Handover, list[Projected]]:
    """Like `fold_projected`, but no weights are computed: what makes them is handed over."""
    model = question.subject.model
    watch = ProjectionWatch(model, lambda projected: projected)
    with evaluation_mode(model), merged_adapters(model), watch.entered():
        found = hand_over(question, sites, watch.meet_handed)
    return found, watch.held


@dataclass
class _Open:
    """An attention whose block has not returned yet."""

    call: Call
    streams: list[Tensor]  # the input of its module, and that of the norm before it, if any
    mixed: Tensor  # `[batch, query, head × width]`; with the gate, once that is known
    projection: nn.Module | None = None
    gate: Tensor | None = None
    is_normed: bool = False  # the projection gets the mixed values through a norm
    output: Tensor | None = None
    stream: Tensor | None = None
    norm: tuple[nn.Module, Tensor, Tensor] | None = None  # with its input and output


@dataclass
class ProjectionWatch:
    """Hooks that follow each attention through its projection to the end of its block."""

    model: nn.Module
    keep: Callable[[Projected], Any]
    held: list[Any] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    streams: list[Tensor] = field(default_factory=list)
    last_norm: tuple[Tensor, Tensor] | None = None
    gates: GateWatch = field(default_factory=GateWatch)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the hooks in place within the block."""
        with hooking() as hooks, self.gates:
            self._hook(hooks)
            yield

    def _hook(self, hooks: Hooks) -> None:
        owners = anatomy(self.model).owners
        blocks = {id(b): b for b in (find_block(self.model, owner.path) for owner in owners)}
        for owner in owners:
            hooks.before(owner.module, self._arrive, with_kwargs=True)
        for module in self.model.modules():
            if is_linear(module):
                hooks.before(module, self._enter_linear)
                hooks.after(module, self._leave_linear)
            elif is_norm(module):
                hooks.after(module, self._leave_norm)
        for block in blocks.values():
            hooks.after(block, self._leave_block)

    def meet(self, call: Call) -> None:
        """An attention was read: look for its mixed values from here on."""
        if call.values is None:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} computes its attention itself, so the values that "
                "it mixes cannot be read"
            )
        self._begin(call, mix(call.weights, call.values).detach())

    def meet_handed(self, call: HandedCall, mixed: Tensor) -> None:
        """An attention was computed whose weights nobody has seen."""
        query, key, value = call.streams
        none = query.new_empty(*query.shape[:2], 0, key.shape[2])
        self._begin(Call(call.site, call.site.name, none, None, value), mixed)

    def _begin(self, call: Call, mixed: Tensor) -> None:
        self.gates.begin(mixed)
        self.open.append(_Open(call, self.streams, mixed.flatten(2)))

    def _arrive(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [*args, *kwargs.values()]
        handed = next(each for each in given if isinstance(each, Tensor))
        normed = self.last_norm is not None and self.last_norm[1] is handed
        self.streams = [handed, self.last_norm[0]] if normed and self.last_norm else [handed]

    def _enter_linear(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        waiting = self.open[-1] if self.open else None
        if waiting is None or waiting.projection is not None or not args:
            return
        waiting.is_normed = waiting.is_normed or self.gates.is_normed(args[0])
        gate = self.gates.gate_of(args[0])
        if gate is not None:
            waiting.gate, waiting.mixed = gate, waiting.mixed * gate.flatten(2)
        if are_close(args[0], waiting.mixed):
            waiting.projection = module
            self.gates.end()

    def _leave_linear(self, module: nn.Module, _: Any, output: Any) -> None:
        waiting = self.open[-1] if self.open else None
        if waiting is not None and waiting.projection is module and waiting.output is None:
            waiting.output = output.detach().reshape(*waiting.mixed.shape[:2], -1)

    def _leave_norm(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not args or not isinstance(output, Tensor):
            return
        self.gates.note_norm(args[0], output)
        waiting = self.open[-1] if self.open else None
        if waiting is not None and waiting.output is not None and waiting.norm is None:
            for stream in waiting.streams:
                if is_sum(args[0], waiting.output, stream):
                    waiting.stream, waiting.norm = stream, (module, args[0], output)
        self.last_norm = (args[0], output)

    def _leave_block(self, _: nn.Module, __: Any, output: Any) -> None:
        """A block has returned; it is post-norm if its output comes from a norm."""
        given = output if isinstance(output, Tensor) else output[0]
        ends_in_norm = self.last_norm is not None and self.last_norm[1] is given
        finished, self.open = self.open, []
        self.gates.end()
        with torch.no_grad():
            self.held += [self.keep(self._projected(each, ends_in_norm)) for each in finished]

    def _projected(self, found: _Open, ends_in_norm: bool) -> Projected:
        weights, values = found.call.weights.detach(), found.call.values
        if found.is_normed and found.projection is None:
            raise NotDefinedError(
                f"{type(self.model).__name__} applies a norm to the mixed values of "
                f"{found.call.path} before it projects them, so its output has no terms by key"
            )
        if found.projection is None or found.output is None or values is None:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} does not pass the mixed values of {found.call.path} "
                "unchanged to a linear projection, so its output has no terms by key"
            )
        matrix, bias = matrix_of(found.projection, found.mixed)
        if not are_close(found.mixed @ matrix + bias, found.output):
            raise UnsupportedModelError(
                f"the projection behind {found.call.path} of {type(self.model).__name__} is not "
                "linear, so its output has no terms by key"
            )
        groups = weights.shape[1] // values.shape[1]
        shared = values.detach().repeat_interleave(groups, dim=1)
        return Projected(
            found.call.site,
            _wide(weights),
            _wide(shared),
            _wide(matrix.unflatten(0, (shared.shape[1], shared.shape[3]))),
            _wide(bias),
            _wide(found.output),
            None if found.stream is None else _wide(found.stream.detach()),
            linear_norm(*found.norm) if found.norm is not None and ends_in_norm else None,
            None if found.gate is None else _wide(found.gate),
        )


def is_linear(module: nn.Module) -> bool:
    """Whether a module may be a linear map: its weight is a matrix."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def matrix_of(module: nn.Module, like: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix `[in, out]` of a linear module, however it is stored, and its bias."""
    width, weight = like.shape[-1], weight_of(module, "weight")
    if isinstance(module, nn.Linear) and _is_plain(weight):
        matrix = weight.detach().T
    else:
        unit = torch.eye(width, dtype=like.dtype, device=like.device)
        matrix = module(unit[None])[0] - module(torch.zeros_like(unit)[None])[0]
    return matrix, module(like.new_zeros(1, 1, width))[0, 0].detach()


def _is_plain(weight: Tensor) -> bool:
    """Whether a weight is here, as numbers that may be multiplied: not quantised."""
    is_own = type(weight) in (Tensor, nn.Parameter) and not weight.is_meta
    return is_own and weight.is_floating_point()


def is_sum(total: Tensor, first: Tensor, second: Tensor) -> bool:
    """Whether a tensor is the sum of two others."""
    return first.shape == second.shape and are_close(total, first + second)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()

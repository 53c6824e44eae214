"""TermTracker: the share of each token in the hidden states, followed through a model's operations.

While a model runs, every operation on a hidden state is also applied to the terms of that state.
There is no table of models: linear operations are applied to each term, norms use the spread of
the whole state, and attention weights are taken as they are. A method's rules decide what happens
at biases and activations. A tensor that depends on the input but has no terms (attention weights,
the weights of a router, the spread of a norm) may scale terms; added to them, it ends them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.decomposing import operations
from attlas.models.decomposing import term_nodes as nodes
from attlas.models.decomposing import term_steps as steps
from attlas.models.decomposing.term_states import (
    Constant,
    DecompositionRules,
    Share,
    Skipped,
    State,
    SumsMet,
    TrackedTensors,
    first_constant,
)
from attlas.models.decomposing.term_sums import TermSums
from attlas.models.decomposing.terms import (
    OwnTerms,
    TermParts,
    Terms,
    TermsAtOnce,
    TermsInParts,
    own_terms,
)
from attlas.models.facts.hooks import OwnMode

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
HALF_TOLERANCE = 0.1  # in half precision, where the whole itself has such errors


class TermTracker(OwnMode):
    """Applies every operation on a hidden state to its terms, too."""

    def __init__(self, name: str, rules: DecompositionRules) -> None:
        super().__init__()
        self._name = name
        self._rules = rules
        self.known = TrackedTensors()
        self.suspended = False
        self.attending = False  # from the call of an attention module until the values are mixed
        self.sums = SumsMet()
        self._alone = True  # tokens have not been mixed yet
        self._unsettled = False  # from the mixing of values until the residual is added

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run the function, and record the terms of its result."""
        name = getattr(func, "__name__", "")
        tensors = steps.tensors_in(steps.read_by(name, args, given))
        states = [state for state in map(self.known.state, tensors) if state is not None]
        if self.suspended or not states:
            return func(*args, **given)
        if func is Tensor.__iter__:
            return iter(self.run(Tensor.unbind, args, {}))
        found = self._follow(name, func, args, given, states)
        result = func(*args, **given)
        self.known.note(args[0] if result is None and args else result, found)
        return result

    # Terms of tensors

    def begin(self, stream: Tensor) -> None:
        """Start here: each token of these hidden states is its own term."""
        self.known.note(stream, own_terms(TermParts.of(stream), stream.detach()))
        self._alone, self._unsettled = True, False
        self.sums.begin()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Track nothing within the block."""
        before, self.suspended = self.suspended, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.suspended = before

    def hold(self, stream: Tensor) -> None:
        """Make all terms of hidden states now: what they were made from is let go."""
        state = self.known.state(stream)
        if isinstance(state, TermsInParts):
            with self.paused():
                state.whole()

    def read(self, tensor: Tensor, what: str, keep: Callable[[Tensor], Tensor]) -> Tensor:
        """What `keep` makes of the terms of a tensor, a part of them at a time, `[term, …]`.

        Raises unless the terms sum to the tensor.
        """
        state = self.known.state(tensor)
        if not isinstance(state, Terms):
            ended = f": the output of {state.step} has none" if isinstance(state, Constant) else ""
            raise UnsupportedModelError(
                f"{self._name} cannot be divided into terms by token at {what}{ended}"
            )
        with self.paused():
            kept, sums = [], TermSums(tensor)
            for which in state.parts:
                terms = state.part(which)
                sums.add(terms)
                kept.append(keep(terms))
        allowed = TOLERANCE.get(self.known.precision, HALF_TOLERANCE) * sums.size
        if not sums.distance <= allowed:
            raise UnsupportedModelError(
                f"the terms of {self._name} at {what} do not sum to what the model computes: they "
                f"are off by {sums.distance:.2g} where {allowed:.2g} is allowed"
            )
        return torch.cat(kept)

    # Terms of the result of an operation

    def _follow(
        self, name: str, func: Any, args: Any, kwargs: dict[str, Any], states: Sequence[State]
    ) -> State | list[Terms]:
        if name in operations.ADDING:
            return self._add(name, states, *args[:2], **kwargs)
        if name in operations.PUTTING:
            return self._put(name, *args, **kwargs)
        if Skipped() in states or (name in operations.GATES and self._rules.slope is None):
            return Skipped()
        if name in ("linear", "addmm"):
            return self._project(name, *args, **kwargs)
        if name in operations.PRODUCTS | operations.MIXING:
            return self._multiply(name, func, args, kwargs, states)
        first = self.known.state(args[0]) if args else None
        if isinstance(first, Terms) and name in operations.OF_ONE:
            return self._follow_one(name, first, func, args, kwargs)
        if name in operations.UNCHANGING and first is not None:
            return first
        handed = [self.known.state(each) for each in steps.tensors_in(args[:1])]
        if name in operations.LINEAR and handed and all(isinstance(each, Terms) for each in handed):
            return self._each_term(func, args, kwargs)
        return first_constant(states, name)

    def _follow_one(
        self, name: str, state: Terms, func: Any, args: Any, kwargs: dict[str, Any]
    ) -> State:
        if name in operations.ACTIVATIONS:
            return self._activate(state, args[0], func(*args, **kwargs))
        if name not in operations.GROUPED:
            return self._norm(name == "layer_norm", state, *args, **kwargs)
        weight, ends = args[1], kwargs["offs"]
        return nodes.through(state, lambda terms: steps.project_groups(terms, weight, ends))

    def _each_term(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Terms | list[Terms]:
        tensors = steps.tensors_in((*args, *kwargs.values()))
        known = {id(each): self.known.state(each) for each in tensors}
        with_terms = [(each, state) for each, state in known.items() if isinstance(state, Terms)]
        return nodes.each_term(func, args, kwargs, with_terms)

    def _ready(self, terms: Terms) -> Terms:
        """Make terms that depend on each other, but not those that queries and keys never need."""
        if isinstance(terms, TermsAtOnce) and not self.attending:
            terms.whole()
        return terms

    def _add(
        self, name: str, states: Sequence[State], first: Any, second: Any, alpha: int | float = 1
    ) -> State:
        both = [self.known.state(first), self.known.state(second)]
        constant = first_constant(states, name)
        if constant in states and Skipped() not in states:
            return constant
        signs = steps.signs_of(name, alpha)
        with_terms = [
            (state, sign)
            for state, sign in zip(both, signs, strict=True)
            if isinstance(state, Terms)
        ]
        if len(with_terms) == 2:
            settles, self._unsettled = self._unsettled and not self.attending, False
            total = self._ready(nodes.added(with_terms, settles, self._rules))
            if settles and self.sums.early:
                self._meet_early(total, signs[0] * first + signs[1] * second)
            return total
        if not with_terms:
            return Skipped()
        own, other = (first, second) if isinstance(both[0], Terms) else (second, first)
        skips = self.known.state(other) == Skipped()
        if skips and self._unsettled:
            self.sums.early.append(other)
        elif skips and not self._alone:
            self.sums.meet(own)
        (state, sign), share = with_terms[0], None if skips else self._share()
        added = signs[1 if own is first else 0]
        bias = steps.as_bias(other, added)
        places = state.places if isinstance(state, OwnTerms) else None
        return self._ready(nodes.through(state, lambda terms: terms * sign, bias, share, places))

    def _meet_early(self, total: Terms, whole: Tensor) -> None:
        """The residual was added after what is skipped: show the sum without the latter."""
        with self.paused():
            early = self.sums.take_early()
            without = whole - early
            terms = nodes.through(total, lambda each: each.clone(), -early)
            self.known.note(without, terms)
        self.sums.meet(without)

    def _project(self, name: str, *args: Any, bias: Any = None, **kwargs: Any) -> State:
        given, weight = args[:2]
        if name == "addmm":
            bias, given, weight = args[0], args[1], args[2].T
        elif len(args) > 2:
            bias = args[2]
        state, share = self.known.state(given), self._share()
        if not isinstance(state, Terms) or self.known.state(weight) or kwargs:
            return state if isinstance(state, Constant) else Constant(name)
        return nodes.projected(
            state, weight, steps.as_bias(bias), share, share is self._rules.shared
        )

    def _put(self, name: str, into: Tensor, *args: Any) -> State:
        """Another tensor is added to places of this one, or written there."""
        pair = [self.known.state(into), self.known.state(args[-1])]
        known = [state.whole() if isinstance(state, Terms) else None for state in pair]
        for state in pair:
            if isinstance(state, Constant | Skipped):
                return state
        parts = next(state.parts for state in pair if isinstance(state, Terms))
        found = steps.put(name, into, args, known)
        return TermsAtOnce(parts, lambda: found)

    def _norm(
        self,
        centred: bool,
        state: Terms,
        given: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float | None = None,
    ) -> State:
        small = torch.finfo(given.dtype).eps if eps is None else eps
        factor = steps.norm_factor(steps.held(given), weight, small, len(shape), centred)
        shift = steps.as_bias(bias)
        return self._ready(nodes.normed(state, factor, len(shape), centred, shift, self._share()))

    def activate(self, given: Tensor, gave: Tensor, is_gate: bool) -> None:
        """Record the terms of the output of an activation module."""
        state = self.known.state(given)
        if isinstance(state, Terms):
            with self.paused():
                found = self._activate(state, given, gave)
            skips = self._rules.slope is None
            self.known.note(gave, Constant("a gate") if is_gate and not skips else found)
        elif state is not None:
            self.known.note(gave, state)

    def _activate(self, state: Terms, given: Tensor, gave: Tensor) -> State:
        slope = self._rules.slope
        if slope is None:
            return Skipped()
        return nodes.scaled(state, slope(steps.held(given), steps.held(gave)))

    def _multiply(
        self, name: str, func: Any, args: Any, kwargs: dict[str, Any], states: Sequence[State]
    ) -> State | list[Terms]:
        with_terms = [state for state in states if isinstance(state, Terms)]
        divides = name in operations.OVER
        if not with_terms or (name in operations.MIXING and len(with_terms) > 1):
            return first_constant(states, name)
        if name in operations.MIXING:
            if len(states) > 1:
                self._alone, self.attending, self._unsettled = False, False, True
            return self._mix(name, func, args, kwargs)
        first, second = self.known.state(args[0]), self.known.state(args[1])
        if divides and not isinstance(first, Terms):
            return Constant(name)
        if isinstance(first, Terms) and isinstance(second, Terms) and not divides:
            return nodes.multiplied((first, second), args)
        own, factor = (first, args[1]) if isinstance(first, Terms) else (second, args[0])
        assert isinstance(own, Terms)
        return nodes.scaled(own, steps.held(factor), divides)

    def _mix(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> State | list[Terms]:
        """A product of matrices, one of which has terms."""
        second = self.known.state(args[1]) if steps.is_plain_product(name, args) else None
        if isinstance(second, Terms):
            return nodes.mixed(args[0], second)
        return self._each_term(func, args, kwargs)

    def _share(self) -> Share | None:
        """How a bias at this point is shared among tokens; None if it belongs to no token."""
        if self._alone:
            return self._rules.own
        return None if self.attending or self._unsettled else self._rules.shared

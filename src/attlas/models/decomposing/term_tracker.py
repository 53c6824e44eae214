"""TermTracker: the share of each token in the hidden states, followed through a model's operations.

While a model runs, every operation on a hidden state is also applied to the terms of that state.
There is no table of models: linear operations are applied to each term, norms use the spread of
the whole state, and attention weights are taken as they are. A method's rules decide what happens
at biases and activations. A tensor that depends on the input but has no terms (attention weights,
the weights of a router, the spread of a norm) may scale terms; added to them, it ends them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.decomposing import term_steps as steps
from attlas.models.decomposing.term_states import (
    Constant,
    DecompositionRules,
    Share,
    Skipped,
    State,
    SumsMet,
    Terms,
    TrackedTensors,
    first_constant,
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
        self.known.note(stream, Terms(lambda: steps.own_terms(stream)))
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

    def terms(self, tensor: Tensor, what: str) -> Tensor:
        """The terms of a tensor, `[term, …]`; raises unless they sum to it."""
        state = self.known.state(tensor)
        if not isinstance(state, Terms):
            ended = f": the output of {state.step} has none" if isinstance(state, Constant) else ""
            raise UnsupportedModelError(
                f"{self._name} cannot be divided into terms by token at {what}{ended}"
            )
        with self.paused():
            distance, size = steps.distance_from_sum(state.values, tensor)
        allowed = TOLERANCE.get(self.known.precision, HALF_TOLERANCE) * size
        if not distance <= allowed:
            raise UnsupportedModelError(
                f"the terms of {self._name} at {what} do not sum to what the model computes: they "
                f"are off by {distance:.2g} where {allowed:.2g} is allowed"
            )
        return state.values

    # Terms of the result of an operation

    def _follow(
        self, name: str, func: Any, args: Any, kwargs: dict[str, Any], states: Sequence[State]
    ) -> State | list[Terms]:
        if name in steps.ADDING:
            return self._add(name, states, *args[:2], **kwargs)
        if name in steps.PUTTING:
            return self._put(name, *args, **kwargs)
        if Skipped() in states or (name in steps.GATES and self._rules.slope is None):
            return Skipped()
        if name in ("linear", "addmm"):
            return self._project(name, *args, **kwargs)
        if name in steps.PRODUCTS | steps.MIXING:
            return self._multiply(name, func, args, kwargs, states)
        first = self.known.state(args[0]) if args else None
        if isinstance(first, Terms) and name in steps.OF_ONE:
            return self._follow_one(name, first, func, args, kwargs)
        if name in steps.UNCHANGING and first is not None:
            return first
        handed = [self.known.state(each) for each in steps.tensors_in(args[:1])]
        if name in steps.LINEAR and handed and all(isinstance(each, Terms) for each in handed):
            return self._each_term(func, args, kwargs)
        return first_constant(states, name)

    def _follow_one(
        self, name: str, state: Terms, func: Any, args: Any, kwargs: dict[str, Any]
    ) -> State:
        if name in steps.ACTIVATIONS:
            return self._activate(state, args[0], func(*args, **kwargs))
        if name not in steps.GROUPED:
            return self._norm(name == "layer_norm", state, *args, **kwargs)
        weight, ends = args[1], kwargs["offs"]
        return self._lazily(lambda: steps.project_groups(state.values, weight, ends))

    def _lazily(self, make: Callable[[], Tensor]) -> Terms:
        """Terms; inside attention computed on first use, as queries and keys never need them."""
        terms = Terms(make)
        if not self.attending:
            terms.values  # noqa: B018
        return terms

    def _each_term(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Terms | list[Terms]:
        tensors = steps.tensors_in((*args, *kwargs.values()))
        known = [(id(each), self.known.state(each)) for each in tensors]
        with_terms = [(number, state) for number, state in known if isinstance(state, Terms)]

        @cache
        def take() -> Any:
            return steps.each_term(func, args, kwargs, {n: s.values for n, s in with_terms})

        if func.__name__ not in steps.SEVERAL:
            return self._lazily(take)
        places = range(len(func(*args, **kwargs)))
        return [self._lazily(lambda place=place: take()[place]) for place in places]  # type: ignore[misc]

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
            total = self._lazily(lambda: self._sum(with_terms, settles))
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
        return self._lazily(
            lambda: steps.with_bias(state.values * sign, steps.as_bias(other, added), share)
        )

    def _meet_early(self, total: Terms, whole: Tensor) -> None:
        """The residual was added after what is skipped: show the sum without the latter."""
        with self.paused():
            early = self.sums.take_early()
            terms = total.values.clone()
            terms[-1] -= early.to(terms)
            without = whole - early
            self.known.note(without, Terms(lambda: terms))
        self.sums.meet(without)

    def _sum(self, with_terms: Sequence[tuple[Terms, float]], settles: bool) -> Tensor:
        """Add two tensors with terms; after an attention, share what belongs to no token."""
        total = torch.vmap(torch.add)(*(state.values * sign for state, sign in with_terms))
        if not settles or self._rules.shared is None:
            return total
        rest = total[-1].clone()
        total[-1] = 0
        return steps.with_bias(total, rest, self._rules.shared)

    def _project(self, name: str, *args: Any, bias: Any = None, **kwargs: Any) -> State:
        given, weight = args[:2]
        if name == "addmm":
            bias, given, weight = args[0], args[1], args[2].T
        elif len(args) > 2:
            bias = args[2]
        state, share = self.known.state(given), self._share()
        if not isinstance(state, Terms) or self.known.state(weight) or kwargs:
            return state if isinstance(state, Constant) else Constant(name)
        return Terms(  # on first use: what enters an activation at which terms end needs none
            lambda: steps.with_bias(steps.project(state.values, weight), steps.as_bias(bias), share)
        )

    def _put(self, name: str, into: Tensor, *args: Any) -> State:
        """Another tensor is added to places of this one, or written there."""
        pair = [self.known.state(into), self.known.state(args[-1])]
        known = [state.values if isinstance(state, Terms) else None for state in pair]
        for state in pair:
            if isinstance(state, Constant | Skipped):
                return state
        found = steps.put(name, into, args, known)
        return Terms(lambda: found)

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
        share = self._share()
        small = torch.finfo(given.dtype).eps if eps is None else eps

        def make() -> Tensor:
            scaled = steps.scale(state.values, given, weight, small, len(shape), centred)
            return steps.with_bias(scaled, steps.as_bias(bias), share)

        return self._lazily(make)

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
        return self._lazily(lambda: steps.activate(state.values, given, gave, slope))

    def _multiply(
        self, name: str, func: Any, args: Any, kwargs: dict[str, Any], states: Sequence[State]
    ) -> State | list[Terms]:
        with_terms = [state for state in states if isinstance(state, Terms)]
        divides = name in steps.OVER
        if not with_terms or (name in steps.MIXING and len(with_terms) > 1):
            return first_constant(states, name)
        if name in steps.MIXING:
            if len(states) > 1:
                self._alone, self.attending, self._unsettled = False, False, True
            return self._mix(name, func, args, kwargs)
        first, second = self.known.state(args[0]), self.known.state(args[1])
        if divides and not isinstance(first, Terms):
            return Constant(name)
        if isinstance(first, Terms) and isinstance(second, Terms) and not divides:
            return self._lazily(lambda: steps.product_of_terms(args, first.values, second.values))
        own, factor = (first, args[1]) if isinstance(first, Terms) else (second, args[0])
        assert isinstance(own, Terms)
        return self._lazily(lambda: steps.scaled(own.values, factor, divides))

    def _mix(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> State | list[Terms]:
        """A product of matrices, one of which has terms."""
        second = self.known.state(args[1]) if steps.is_plain_product(name, args) else None
        if isinstance(second, Terms):
            return self._lazily(lambda: steps.mix(args[0], second.values))
        return self._each_term(func, args, kwargs)

    def _share(self) -> Share | None:
        """How a bias at this point is shared among tokens; None if it belongs to no token."""
        if self._alone:
            return self._rules.own
        return None if self.attending or self._unsettled else self._rules.shared

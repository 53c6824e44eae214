"""Hidden states as sums of terms, one for each token, in a forward pass of a whole model."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import NotDefinedError, UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.decomposing.term_states import DecompositionRules
from attlas.models.decomposing.term_tracker import TermTracker
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode, merged_adapters
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import find_block, find_convolution, find_recurrent
from attlas.models.states.block_states import STREAM

# Pairs of tokens: each has a vector in every hidden state.
PAIRS_AT_ONCE = {"cpu": 2**14, "cuda": 2**18}


def in_small_batches(question: Question) -> list[Question]:
    """The question in batches small enough for one vector for each pair of tokens."""
    most = in_a_small_batch(question)
    if question.is_shared:
        return [question]
    starts = range(0, len(question), most)
    return [question.rows(range(start, min(start + most, len(question)))) for start in starts]


def in_a_small_batch(question: Question) -> int:
    """How many rows of a question such a batch has, at most."""
    pairs = PAIRS_AT_ONCE.get(question.subject.device.type, PAIRS_AT_ONCE["cpu"])
    return max(1, pairs // len(question.inputs.tokens[0]) ** 2)


@dataclass
class TermReading:
    """What is kept of the terms of each block: a few numbers for each pair of tokens.

    `keep` gets states `[batch, query, feature]` and some of their terms, `[term, batch, query,
    feature]`; what it makes of each term is `[term, batch, query]`, and that of no token is
    dropped.
    """

    keep: Callable[[Tensor, Tensor], Tensor]
    blocks: list[Tensor] = field(default_factory=list)  # `[token, batch, query]` of each

    def read(self, tracker: TermTracker, whole: Tensor, states: Tensor, what: str) -> None:
        """Read the terms of a tensor, which are those of the states in its shape."""

        def keep(terms: Tensor) -> Tensor:
            return self.keep(states.to(terms), terms.reshape(len(terms), *states.shape))

        self.blocks.append(tracker.read(whole, what, keep)[:-1])


@contextmanager
def tracking_terms(
    question: Question,
    rules: DecompositionRules,
    *,
    at_end: TermReading | None = None,
    at_sum: TermReading | None = None,
) -> Iterator[TermTracker]:
    """Track the terms of the model's hidden states within the block.

    `at_end` reads the output of each block, `at_sum` the states that each block adds its
    feed-forward to; the terms are checked to sum to the states.
    """
    model, tokens = question.subject.model, len(question.inputs.tokens[0])
    check_one_stack(question)
    tracker = TermTracker(question.subject.name, rules)
    told = _Telling(tracker, tokens, rules.each_block, at_end)

    def meet_sum(whole: Tensor) -> None:
        if at_sum is not None:
            shape = (-1, tokens, whole.shape[-1])  # some families flatten tokens and rows
            states = whole.detach().reshape(shape)
            at_sum.read(tracker, whole, states, "the end of an attention")

    tracker.sums.met = meet_sum
    blocks = blocks_of(question)
    with evaluation_mode(model), merged_adapters(model), hooking() as hooks, tracker:
        for block in blocks:
            hooks.before(block, told.enter, with_kwargs=True)
            hooks.after(block, told.leave)
        for owner in anatomy(model).owners:
            hooks.before(owner.module, told.attend)
        for module in filter(is_activation, model.modules()):
            hooks.before(module, told.before_activation)
            hooks.after(module, told.after_activation, always_call=True)
        try:
            yield tracker
        finally:
            tracker.sums.met = None  # it refers to the tracker
            tracker.known.clear()


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an elementwise activation, found out by trying it.

    Activations are implemented in many ways, and only the whole module has a slope.
    """
    if any(True for _ in (*module.children(), *module.parameters(), *module.buffers())):
        return False
    probe = torch.linspace(-2, 2, 8)[None]
    try:
        whole, alone = module.forward(probe.clone()), module.forward(probe[:, :1].clone())
    except Exception:  # it does not take a single tensor
        return False
    is_tensor = isinstance(whole, Tensor) and isinstance(alone, Tensor)
    if not is_tensor or whole.shape != probe.shape or torch.equal(whole, probe):
        return False
    return torch.allclose(whole[:, :1], alone)


def blocks_of(question: Question) -> list[nn.Module]:
    """The blocks that hold the attentions of the question's model, each once."""
    model = question.subject.model
    blocks = [find_block(model, path) for _, path in question.subject.places]
    return list({id(block): block for block in blocks}.values())


def check_one_stack(question: Question) -> None:
    """Raise unless tokens run through a single stack, and are mixed by self-attention alone."""
    kinds = {site.kind for site in question.subject.sites}
    if len(kinds) > 1 or "pooling" in kinds or question.inputs.prefix is not None:
        raise NotDefinedError(
            f"{question.subject.name} cannot be divided into terms by token: that needs a single "
            f"stack of self-attention, and it has the kinds {', '.join(sorted(kinds))}"
        )
    mixer = find_recurrent(question.subject.model) or find_convolution(blocks_of(question))
    if mixer is not None:
        raise NotDefinedError(
            f"{question.subject.name} cannot be divided into terms by token: only attention may "
            f"mix them, and {mixer} does without"
        )


class _Telling:
    """Hooks that tell a tracker which modules run."""

    def __init__(
        self,
        tracker: TermTracker,
        tokens: int,
        each_block: bool,
        at_end: TermReading | None,
    ) -> None:
        self._tracker = tracker
        self._tokens = tokens
        self._each_block = each_block
        self._at_end = at_end
        self._begun = False

    def enter(self, block: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A block is called: start here if nothing has started, or if each block starts again."""
        if self._begun and not self._each_block:
            return
        stream = args[0] if args else kwargs.get(STREAM)
        if not isinstance(stream, Tensor) or stream.ndim != 3 or stream.shape[1] != self._tokens:
            raise UnsupportedModelError(
                f"{type(block).__name__} cannot be divided into terms by token: it does not "
                f"get hidden states of the {self._tokens} tokens, [batch, token, feature]"
            )
        self._begun = True
        self._tracker.begin(stream)

    def leave(self, block: nn.Module, _: Any, output: Any) -> None:
        """A block has returned: its values must have been mixed by now."""
        if self._tracker.attending:
            raise UnsupportedModelError(
                f"{type(block).__name__} cannot be divided into terms by token: no step "
                "that mixes its values by its attention was found"
            )
        stream = output if isinstance(output, Tensor) else output[0]
        if self._at_end is not None:
            what = f"the end of {type(block).__name__}"
            self._at_end.read(self._tracker, stream, stream.detach(), what)
        if self._each_block:
            self._tracker.known.forget(stream)
        else:
            self._tracker.hold(stream)

    def attend(self, *_: Any) -> None:
        """An attention module is called."""
        self._tracker.attending = True

    def before_activation(self, *_: Any) -> None:
        """An activation is called: track nothing inside it."""
        self._tracker.suspended = True

    def after_activation(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """An activation has returned or failed."""
        self._tracker.suspended = False
        if isinstance(output, Tensor) and args:
            is_gate = bool(module.forward(output.new_zeros(1)).any())
            self._tracker.activate(args[0], output, is_gate)

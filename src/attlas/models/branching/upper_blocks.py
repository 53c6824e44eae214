"""The top of a model: from the block of some site on, with all that is below it standing still.

Many searches change attention at a site again and again and ask for the output each time. What
the blocks below give is held, and they give it again without being run; the rest of the pass is the
model's own, so that masks, rotary tables and heads need no code here.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.branching.blocks import (
    BlockCall,
    find_stacks,
    map_tensors,
    study_blocks,
    take_rows,
)
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.call import Call
from attlas.models.tap.edits import replace
from attlas.models.tap.opening import tap
from attlas.results import Site
from attlas.shapes import CopiedAttention

Attentions = Mapping[Site, CopiedAttention]


@dataclass(frozen=True, eq=False)
class UpperPass:
    """What came of a pass: the output `[row, place, choice]`, and the attention that was used."""

    logits: Tensor
    attention: dict[Site, Tensor]


@dataclass(frozen=True, eq=False)
class UpperBlocks:
    """A question from some block on, each of its inputs so many times over.

    Rows go copy by copy: row `copy · batch + input`. `clean` is the attention of the question's own
    pass at the sites that are looked at, `[batch, head, query, key]`, and `logits` its output.
    """

    question: Question  # of all rows
    copies: int
    clean: dict[Site, Call]
    logits: Tensor
    held: dict[int, Any]  # by the number of a stack, what its last block below gave, for all rows
    depth: int  # how many calls of blocks are below
    skipped: dict[str, int]  # how many sites of each kind are below

    def run(self, attention: Attentions) -> UpperPass:
        """A pass from here on, these sites having this attention; in a graph if there is one.

        Nothing is frozen: borrow the model where its own weights shall ask for no gradient.
        """
        wanted = {self._renumbered(site): site for site in self.clean}
        edits = [
            replace(weights).at(kind=site.kind, layer=self._renumbered(site).layer)
            for site, weights in attention.items()
        ]
        subject = self.question.subject
        with self._standing_still(), tap(subject.model, edits, wants=wanted.__contains__) as seen:
            logits = run_logits(self.question)
        return UpperPass(logits, {wanted[call.site]: call.weights for call in seen.calls})

    def repeated(self, tensor: Tensor) -> Tensor:
        """What there is for each input, for each row."""
        return tensor.repeat(self.copies, *[1] * (tensor.ndim - 1))

    def _renumbered(self, site: Site) -> Site:
        """Sites are numbered by their calls, and those below are not called."""
        return Site(site.kind, site.layer - self.skipped.get(site.kind, 0), site.heads)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Within the block, the blocks below give what they gave before."""
        subject = self.question.subject
        stacks = find_stacks(subject.model, [path for _, path in subject.places])
        calls = iter(range(self.depth))
        with ExitStack() as stack:
            if self.depth:
                for number, blocks in enumerate(stacks):
                    for block in dict.fromkeys(blocks):
                        own = block.forward
                        stack.enter_context(
                            _with_forward(block, self._stand_in(number, own, calls))
                        )
            yield

    def _stand_in(
        self, stack: int, own: Callable[..., Any], calls: Iterator[int]
    ) -> Callable[..., Any]:
        """The forward of a block that runs only when the calls below are over."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            return own(*args, **kwargs) if next(calls, None) is None else self.held[stack]

        return forward


def find_upper_blocks(question: Question, sites: tuple[Site, ...], copies: int = 1) -> UpperBlocks:
    """The question from the lowest of these sites on; an error where it does not come out again."""
    subject = question.subject
    calls = study_blocks(subject, question.inputs)
    depths = [
        number for number, call in enumerate(calls) for site in sites if site.name in call.sites
    ]
    if len(depths) != len(sites):
        raise UsageError(f"{subject.name} has not all of the sites that were asked for")
    depth = min(depths)
    below = [name for call in calls[:depth] for name in call.sites]
    kinds = [name.split(".")[0] for name in below]
    with evaluation_mode(subject.model), torch.no_grad():
        clean, logits, outputs = _first_pass(question, sites, depth)
        index = torch.arange(len(question), device=subject.device).repeat(copies)
        held = {
            calls[number].stack: _of_rows(output, calls[number], index)
            for number, output in enumerate(outputs)
        }
        top = UpperBlocks(
            question.rows(index.tolist()),
            copies,
            clean,
            logits,
            held,
            depth,
            {kind: kinds.count(kind) for kind in kinds},
        )
        _check(top)
    return top


def _of_rows(output: Any, call: BlockCall, index: Tensor) -> Any:
    """What a block gave, for the rows that this index names."""
    return map_tensors(
        output, lambda path, tensor: take_rows(tensor, call.coming_out.get(path), index)
    )


def _first_pass(
    question: Question, sites: tuple[Site, ...], depth: int
) -> tuple[dict[Site, Call], Tensor, list[Any]]:
    """The clean attention of these sites, the output, and what the blocks below gave."""
    subject = question.subject
    outputs: list[Any] = []

    def note(_: nn.Module, __: Any, output: Any) -> None:
        outputs.append(output if len(outputs) < depth else None)

    with ExitStack() as stack:
        seen = stack.enter_context(tap(subject.model, wants=set(sites).__contains__))
        for blocks in find_stacks(subject.model, [path for _, path in subject.places]):
            for block in dict.fromkeys(blocks):
                stack.callback(block.register_forward_hook(note).remove)
        logits = run_logits(question)
    return {call.site: call for call in seen.calls}, logits, outputs[:depth]


def _check(top: UpperBlocks) -> None:
    """An error where the top, left as it is, gives another output than the whole model."""
    again = top.run({}).logits
    clean = top.repeated(top.logits)
    tolerance = 1e-3 if clean.dtype in (torch.float32, torch.float64) else 5e-2
    if (again - clean).abs().max() > tolerance * clean.abs().max().clamp_min(1):
        raise UnsupportedModelError(
            f"{top.question.subject.name} gives another output when its lower blocks stand still, "
            "so its upper ones cannot be run by themselves"
        )


@contextmanager
def _with_forward(block: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Within the block this is what the module does; its hooks are called as ever."""
    before = vars(block).get("forward")
    block.forward = forward
    try:
        yield
    finally:
        if before is None:
            del block.forward
        else:
            block.forward = before

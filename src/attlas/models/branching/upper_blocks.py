"""The upper blocks of a model: run again and again while the blocks below stand still.

Many searches change the attention of a site repeatedly and need the output each time. The outputs
of the blocks below are stored, and the blocks return them without running. The model itself runs
the rest of the pass, so masks, rotary tables and heads need no code here.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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
from attlas.models.facts.hooks import hooking
from attlas.models.tap.call import Call
from attlas.models.tap.edits import replace
from attlas.models.tap.opening import tap
from attlas.results import Site
from attlas.shapes import CopiedAttention

Attentions = Mapping[Site, CopiedAttention]


@dataclass(frozen=True, eq=False)
class UpperPass:
    """The output of a pass, `[row, place, choice]`, and the attention that was used."""

    logits: Tensor
    attention: dict[Site, Tensor]


@dataclass(frozen=True, eq=False)
class UpperBlocks:
    """A question from some block on, with copies of each of its inputs.

    Row `copy · batch + input` is one copy of one input. `clean` is the unchanged attention at the
    sites of interest, `[batch, head, query, key]`, and `logits` the unchanged output.
    """

    question: Question  # of all rows
    copies: int
    clean: dict[Site, Call]
    logits: Tensor
    held: dict[int, Any]  # by number of the stack: the output of its last block below, all rows
    depth: int  # the number of block calls below
    skipped: dict[str, int]  # the number of sites of each kind below

    def run(self, attention: Attentions) -> UpperPass:
        """Run the upper blocks with this attention at these sites; in a graph if grad is enabled.

        Nothing is frozen: use `evaluation_mode` if the weights should not ask for gradients.
        """
        numbered = {self._renumbered(site): site for site in self.clean}
        edits = [
            replace(weights).at(kind=site.kind, layer=self._renumbered(site).layer)
            for site, weights in attention.items()
        ]
        subject = self.question.subject
        with self._standing_still(), tap(subject.model, edits, wants=numbered.__contains__) as seen:
            logits = run_logits(self.question)
        return UpperPass(logits, {numbered[call.site]: call.weights for call in seen.calls})

    def repeated(self, tensor: Tensor) -> Tensor:
        """Repeat what belongs to the inputs for all rows."""
        return tensor.repeat(self.copies, *[1] * (tensor.ndim - 1))

    def _renumbered(self, site: Site) -> Site:
        """The number that a site has in a pass where the sites below are not called."""
        return Site(site.kind, site.layer - self.skipped.get(site.kind, 0), site.heads)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Let the blocks below return their stored outputs within the block."""
        subject = self.question.subject
        stacks = find_stacks(subject.model, [path for _, path in subject.places])
        calls = iter(range(self.depth))
        with hooking() as hooks:
            if self.depth:
                for number, blocks in enumerate(stacks):
                    for block in dict.fromkeys(blocks):
                        hooks.instead(block, partial(self._stand_in, number, calls))
            yield

    def _stand_in(
        self, stack: int, calls: Iterator[int], own: Callable[..., Any]
    ) -> Callable[..., Any]:
        """A forward that returns the stored output for the calls below, and then runs the block."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            return own(*args, **kwargs) if next(calls, None) is None else self.held[stack]

        return forward


def find_upper_blocks(question: Question, sites: tuple[Site, ...], copies: int = 1) -> UpperBlocks:
    """The question from the lowest of these sites on; raises unless the output is reproduced."""
    subject = question.subject
    calls = study_blocks(subject, question.inputs)
    depths = [
        number for number, call in enumerate(calls) for site in sites if site.name in call.sites
    ]
    if len(depths) != len(sites):
        raise UsageError(f"{subject.name} does not have all of the sites that were asked for")
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
        upper = UpperBlocks(
            question.rows(index.tolist()),
            copies,
            clean,
            logits,
            held,
            depth,
            {kind: kinds.count(kind) for kind in kinds},
        )
        _check(upper)
    return upper


def _of_rows(output: Any, call: BlockCall, index: Tensor) -> Any:
    """The output of a block for the rows that `index` names."""
    return map_tensors(
        output, lambda path, tensor: take_rows(tensor, call.coming_out.get(path), index)
    )


def _first_pass(
    question: Question, sites: tuple[Site, ...], depth: int
) -> tuple[dict[Site, Call], Tensor, list[Any]]:
    """The unchanged attention of these sites, the output, and the outputs of the blocks below."""
    subject = question.subject
    outputs: list[Any] = []

    def note(_: nn.Module, __: Any, output: Any) -> None:
        outputs.append(output if len(outputs) < depth else None)

    with tap(subject.model, wants=set(sites).__contains__) as seen, hooking() as hooks:
        for blocks in find_stacks(subject.model, [path for _, path in subject.places]):
            for block in dict.fromkeys(blocks):
                hooks.after(block, note)
        logits = run_logits(question)
    return {call.site: call for call in seen.calls}, logits, outputs[:depth]


def _check(upper: UpperBlocks) -> None:
    """Raise if the upper blocks, unchanged, give another output than the whole model."""
    again = upper.run({}).logits
    clean = upper.repeated(upper.logits)
    tolerance = 1e-3 if clean.dtype in (torch.float32, torch.float64) else 5e-2
    if (again - clean).abs().max() > tolerance * clean.abs().max().clamp_min(1):
        raise UnsupportedModelError(
            f"{upper.question.subject.name} gives another output when its lower blocks stand "
            "still, so its upper blocks cannot run on their own"
        )

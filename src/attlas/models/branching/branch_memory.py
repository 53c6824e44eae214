"""How many variants run at once: limited by tokens, or by the memory of the graph."""

from collections.abc import Iterator, Sequence

import torch

from attlas.models.asking.memory import free_bytes
from attlas.models.asking.question import Question
from attlas.models.facts.anatomy import width_of

TOKENS_AT_ONCE = 2**15
LEAST_BYTES = 2**31
SHARE = 1 / 4  # of the free memory of a device
VECTORS_KEPT = 34  # hidden-state vectors that a block keeps for the gradient of each token


def portions(
    question: Question,
    depths: Sequence[int],
    blocks: int,
    gradients: bool,
    memory: int | None = None,
) -> Iterator[range]:
    """Which variants run together: consecutive ones, as many as fit into `memory` bytes.

    `depths` has the block that each variant starts in, the lowest first. With gradients, a variant
    keeps this block and all above it in memory.
    """
    if not gradients:
        most = rows_at_once(question)
        starts = range(0, len(depths), most)
        yield from (range(start, min(start + most, len(depths))) for start in starts)
        return
    each = _row_bytes(question)
    free = spare_bytes(question.subject.device)
    limit = free if memory is None else min(free, memory)
    start, held = 0, each  # the unchanged row
    for number, depth in enumerate(depths):
        size = each * (blocks - depth) // blocks
        if number > start and held + size > limit:
            yield range(start, number)
            start, held = number, each
        held += size
    yield range(start, len(depths))


def rows_at_once(question: Question) -> int:
    """How many copies of a question run at once without gradients."""
    tokens = len(question.inputs.tokens[0]) * len(question)
    return max(1, TOKENS_AT_ONCE // tokens)


def spare_bytes(device: torch.device, share: float = SHARE) -> int:
    """A share of the free memory of a GPU; a constant for a CPU.

    It is rounded down to a power of two, so that it stays the same while recorded passes hold
    some memory.
    """
    if device.type != "cuda":
        return LEAST_BYTES
    most = int((free_bytes(device) or 0) * share)
    return max(LEAST_BYTES, 1 << most.bit_length() - 1)


def _row_bytes(question: Question) -> int:
    """The memory of a variant that starts in the first block."""
    subject = question.subject
    tokens = len(question.inputs.tokens[0])
    heads = sum(site.heads for site in subject.sites)
    states = VECTORS_KEPT * width_of(subject.model) * len(subject.sites)
    numbers = tokens * (heads * tokens + states)
    return max(1, len(question) * numbers * subject.dtype.itemsize)

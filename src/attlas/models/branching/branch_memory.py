"""How many variants of a branched pass run at once: by tokens, or by what a graph would hold."""

from collections.abc import Iterator, Sequence

import torch

from attlas.models.asking.question import Question

TOKENS_AT_ONCE = 2**15
LEAST_BYTES = 2**31
SHARE = 1 / 4  # of what is to be had on a device
VECTORS_KEPT = 34  # of each token, as wide as the stream, that a block keeps for its gradient


def portions(
    question: Question,
    depths: Sequence[int],
    blocks: int,
    gradients: bool,
    memory: int | None = None,
) -> Iterator[range]:
    """Which variants run together: neighbours, as many as fit in the memory or in so many bytes.

    A variant is given by the block it starts in, of so many: with gradients, what it keeps in
    memory is of this block and those above. The shallow ones come first.
    """
    if not gradients:
        most = rows_at_once(question)
        starts = range(0, len(depths), most)
        yield from (range(start, min(start + most, len(depths))) for start in starts)
        return
    each = _row_bytes(question)
    free = spare_bytes(question.subject.device)
    limit = free if memory is None else min(free, memory)
    start, held = 0, each  # the row as it is
    for number, depth in enumerate(depths):
        size = each * (blocks - depth) // blocks
        if number > start and held + size > limit:
            yield range(start, number)
            start, held = number, each
        held += size
    yield range(start, len(depths))


def rows_at_once(question: Question) -> int:
    """How many copies of a question run at once where no gradient is asked for."""
    tokens = len(question.inputs.tokens[0]) * len(question)
    return max(1, TOKENS_AT_ONCE // tokens)


def spare_bytes(device: torch.device, share: float = SHARE) -> int:
    """A part of what can be had on a device; of a processor's memory nothing is asked.

    A power of two, so that it is the same while a recorded pass holds some of it.
    """
    if device.type != "cuda":
        return LEAST_BYTES
    known = torch.cuda.memory_stats_as_nested_dict(device)  # flat, it takes far longer
    reserved, allocated = (
        known.get(f"{kind}_bytes", {}).get("all", {}).get("current", 0)
        for kind in ("reserved", "allocated")
    )
    most = int((torch.cuda.mem_get_info(device)[0] + reserved - allocated) * share)
    return max(LEAST_BYTES, 1 << most.bit_length() - 1)


def _row_bytes(question: Question) -> int:
    """What a variant that starts in the first block keeps."""
    subject = question.subject
    tokens = len(question.inputs.tokens[0])
    heads = sum(site.heads for site in subject.sites)
    width = getattr(subject.model.config, "hidden_size", 768)
    numbers = tokens * (heads * tokens + VECTORS_KEPT * width * len(subject.sites))
    return max(1, len(question) * numbers * next(subject.model.parameters()).element_size())

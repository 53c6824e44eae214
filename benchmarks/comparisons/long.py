"""Long inputs: a decoder of 30 layers in the shape of SmolLM2-135M (a small vocabulary).

Each comparison is made in a new process. The memory of the second call is what it added: in the
allocator on a GPU, in the process on a CPU. On a GPU the times are medians of five calls after it,
ours and the peer's in turns. The model is in bfloat16 there, at 8,192 tokens and, for rollout, at
more. The differences are at 512 tokens in float32, from `output_attentions`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from comparing import Row, Setup, apart, largest_difference
from shapes import MOST, number_words, random_ids, smollm

import attlas
from attlas.errors import AttlasError

FORWARD, BACKWARD = "a plain forward", "a plain forward and backward"
CASES = {  # method: peer, goal of seconds, goal of megabytes
    "raw_attention": (FORWARD, 1.5, 500.0),
    "attention_rollout": (FORWARD, 3.0, 1500.0),
    "generic_relevance": (BACKWARD, 5.0, 6000.0),
}
Cost = tuple[float, float]  # seconds and megabytes
LONGER = {32_768: 4.0, MOST: None}  # tokens: how many plain forwards rollout may take
COMPARED = 512


def compare(setup: Setup) -> Iterator[Row]:
    tokens = 8192 if setup.on_gpu else setup.size(2048, 128)
    differences = apart(_differences, setup)
    for name, (peer, factor, megabytes) in CASES.items():
        goal = (factor, megabytes) if setup.on_gpu else (None, None)
        yield _row(setup, name, peer, tokens, goal, differences.get(name))
    if not setup.on_gpu:
        yield _row(setup, "attention_rollout", "output_attentions", tokens, (None, None), None)
        return
    for longer, most in LONGER.items():
        yield _row(setup, "attention_rollout", FORWARD, longer, (most, None), None)


def _row(
    setup: Setup,
    name: str,
    peer: str,
    tokens: int,
    goal: tuple[float | None, float | None],
    difference: float | None,
) -> Row:
    ours, theirs, note = apart(_measured, setup, name, peer, tokens)
    return Row(
        f"`{name}`, SmolLM2's shape, {tokens:,} tokens",
        peer,
        ours[0] if ours else None,
        theirs[0],
        difference=difference,
        goal=None if goal[0] is None else (goal[0], 0.0),
        megabytes=ours[1] if ours else None,
        peer_megabytes=theirs[1],
        goal_megabytes=None if goal[1] is None else theirs[1] + goal[1],
        note=note,
    )


def _measured(setup: Setup, name: str, peer: str, tokens: int) -> tuple[Cost | None, Cost, str]:
    """Seconds and megabytes of a call of ours, if it fits, and of the peer; then why it did not."""
    ids = random_ids(tokens)
    dtype = torch.bfloat16 if setup.on_gpu else torch.float32
    theirs, ours = (_work(setup, each, dtype) for each in (peer, name))
    warm = ids if setup.on_gpu else ids[:16]
    theirs(warm)
    of_peer = setup.peak(partial(theirs, ids))
    try:
        ours(warm)
        of_ours = setup.peak(partial(ours, ids))
    except (torch.OutOfMemoryError, AttlasError) as problem:
        return None, of_peer, str(problem).splitlines()[0][:80]
    if setup.on_gpu:
        rounds = 5 if tokens < max(LONGER) else 2
        seconds = setup.in_turns(partial(ours, ids), partial(theirs, ids), rounds=rounds)
        of_ours, of_peer = (seconds[0], of_ours[1]), (seconds[1], of_peer[1])
    return of_ours, of_peer, ""


def _work(setup: Setup, name: str, dtype: torch.dtype) -> Callable[[list[int]], Any]:
    eager, device = name == "output_attentions", setup.device
    model = smollm("eager" if eager else "sdpa", setup.size(30, 2)).to(device, dtype)
    if name in CASES:
        subject = attlas.Subject(model, number_words())
        return lambda ids: attlas.explain(subject, ids, name, maps=False)

    def forward(ids: list[int]) -> Any:
        given = torch.tensor([ids], device=device)
        extra = {"output_attentions": True} if eager else {}
        with torch.no_grad():
            return model(given, use_cache=False, logits_to_keep=1, **extra)

    def backward(ids: list[int]) -> Any:
        given = torch.tensor([ids], device=device)
        vectors = model.get_input_embeddings()(given).detach().requires_grad_()
        found = model(inputs_embeds=vectors, use_cache=False, logits_to_keep=1)
        return torch.autograd.grad(found.logits.max(), vectors)

    return backward if name == BACKWARD else forward


def _differences(setup: Setup) -> dict[str, float]:
    """How far the scores are from those of whole maps."""
    ids = random_ids(setup.size(COMPARED, 64))
    model = smollm("eager", setup.size(30, 2)).to(setup.device)
    maps = model(torch.tensor([ids], device=setup.device), output_attentions=True).attentions
    last = torch.eye(len(ids), device=setup.device)[-1]
    for weights in reversed(maps):
        last = (last + last @ weights[0].mean(0)) / 2
    defined = {"raw_attention": maps[-1][0].mean(0)[-1], "attention_rollout": last}
    subject = attlas.Subject(smollm("sdpa", setup.size(30, 2)).to(setup.device), number_words())
    return {
        name: largest_difference([attlas.explain(subject, ids, name).scores], [scores])
        for name, scores in defined.items()
    }

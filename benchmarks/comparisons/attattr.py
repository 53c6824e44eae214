"""Self-attention attribution of one text, against the published procedure as a plain loop.

The loop: for each layer, one batch of m copies through the whole model on eager attention, that
layer's attention scaled by k/m, and the gradient of the probability on it. The difference is the
mean over layers of |I - I*|₁ / |I*|₁: at the published points from the loop's maps, with fewer
points from 108 midpoints in float32, of which the loop's own distance is in the note.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from comparing import Row, Setup
from shapes import bert, ids_of, one_question, texts_of
from torch import Tensor
from transformers.models.bert import modeling_bert

import attlas
from attlas.models.branching.attribution import attributions
from attlas.models.branching.integrals import Quadrature

STEPS = 20
PUBLISHED = {"rule": "right", "steps": STEPS}
CALLS: Mapping[str, Mapping[str, Any]] = {
    "the published 20 points": PUBLISHED,
    "5 midpoints": {"steps": 5},
    "as it is by default": {},
}
GOALS = {  # how many times as fast as the loop
    ("tf32", "the published 20 points"): 4,
    ("bfloat16", "the published 20 points"): 7,
    ("bfloat16", "5 midpoints"): 14,
    ("tf32", "as it is by default"): 3,
}


def compare(setup: Setup) -> Iterator[Row]:
    tokens = 128 if setup.on_gpu else setup.size(32, 8)
    exact = bert(setup.device, layers=setup.size(12, 2))
    (text,) = texts_of(exact, [tokens])
    reference = _maps(exact, text, {"steps": setup.size(108, 12)})
    for precision in ("float32", "tf32", "bfloat16") if setup.on_gpu else ("float32",):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        try:
            yield from _rows(setup, precision, text, reference)
        finally:  # other comparisons follow, also where this one fails
            torch.backends.cuda.matmul.allow_tf32 = False


def _rows(setup: Setup, precision: str, text: str, reference: list[Tensor]) -> Iterator[Row]:
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    ours, theirs = (bert(setup.device, dtype, setup.size(12, 2)) for _ in range(2))
    theirs.model.set_attn_implementation("eager")
    for subject in (ours, theirs):
        subject.model.requires_grad_(False)
    loop = partial(published, theirs.model, ids_of(theirs, text))
    maps = loop()
    for what, options in CALLS.items():
        work = partial(attlas.explain, ours, text, "attattr", **options)
        inner = partial(_inner, ours, text, options)
        taken, behind, peer = setup.in_turns(work, inner, loop, rounds=3)
        same = options == PUBLISHED
        found = _maps(ours, text, options)
        times = GOALS.get((precision, what))
        yield Row(
            f"`attattr`, {what}, {precision}, {len(text.split()) + 2} tokens",
            "the published loop",
            taken,
            peer,
            behind,
            map_error(found, maps if same else reference),
            "of the maps" if same else "of the maps, from the integral",
            goal=(1 / times, 0.0) if times else None,
            note="" if same else f"the loop differs by {map_error(maps, reference):.1g}",
        )


def _maps(subject: attlas.Subject, text: str, options: Mapping[str, Any]) -> list[Tensor]:
    found = attlas.explain(subject, text, "attattr", maps=True, **options).maps
    return [torch.as_tensor(each) for each in found.weights]


def _inner(subject: attlas.Subject, text: str, options: Mapping[str, Any]) -> list[Tensor]:
    question = one_question(subject, text)
    quadrature = Quadrature(**{"steps": None, **options})
    return [each.weights for each in attributions(question, subject.sites, quadrature)]


def published(model: Any, ids: Tensor) -> list[Tensor]:
    """The published procedure, layer by layer."""
    factors = torch.arange(1, STEPS + 1, device=ids.device) / STEPS
    given = ids.expand(STEPS, -1)
    with torch.no_grad():
        choice = int(model(ids).logits.argmax())
    found = []
    for layer in range(model.config.num_hidden_layers):
        with raised(layer, factors.to(model.dtype)) as held:
            total = model(given).logits.float().softmax(-1)[:, choice].sum()
            (gradients,) = torch.autograd.grad(total, held)
        attention = held[0][-1].float() / factors[-1]
        found.append(attention.detach() * gradients.float().mean(0))
    return found


@contextmanager
def raised(layer: int, factors: Tensor) -> Iterator[list[Tensor]]:
    """BERT with the attention of one layer times a factor for each row of the batch."""
    own, calls, held = modeling_bert.eager_attention_forward, [], []

    def attend(module, query, key, value, *args, **kwargs):  # type: ignore[no-untyped-def]
        output, weights = own(module, query, key, value, *args, **kwargs)
        calls.append(module)
        if len(calls) - 1 == layer:
            weights = (factors[:, None, None, None] * weights).detach().requires_grad_()
            held.append(weights)
            output = (weights @ value).transpose(1, 2).contiguous()
        return output, weights

    modeling_bert.eager_attention_forward = attend
    try:
        yield held
    finally:
        modeling_bert.eager_attention_forward = own


def map_error(found: Sequence[Tensor], reference: Sequence[Tensor]) -> float:
    pairs = [
        (one.cpu().float(), other.cpu().float())
        for one, other in zip(found, reference, strict=True)
    ]
    shares = [float((one - other).abs().sum() / other.abs().sum()) for one, other in pairs]
    return sum(shares) / len(shares)

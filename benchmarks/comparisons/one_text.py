"""One text: methods of one pass, against a plain forward, or forward and backward, of the model.

The backward pass goes down to the vectors of the tokens; the plain model uses fused attention. The
scores are compared with the definitions, computed from `output_attentions` or plain gradients. The
same text is explained again and again, and on a GPU a pass that comes for the third time in one
shape is recorded; so some methods are also timed on texts whose length the model has not seen.
"""

from collections.abc import Iterator
from functools import partial

import torch
from comparing import ROUNDS, Row, Setup, largest_difference
from shapes import bert, ids_of, one_question, texts_of
from torch import Tensor

import attlas
from attlas.methods import METHODS

FORWARD = {"raw_attention": {}, "attention_rollout": {}}
BACKWARD = {
    "gradient": {},
    "gradient_attention": {},
    "generic_relevance": {},
    "input_x_gradient": {},
    "attn_lrp": {},
    "attn_lrp, variant cp": {"variant": "cp"},
    "lrp_relevance": {},
}
HELD = ("gradient", "gradient_attention", "generic_relevance")  # to 1.4 × the plain passes


def compare(setup: Setup) -> Iterator[Row]:
    subject = bert(setup.device, layers=setup.size(12, 2))
    tokens = setup.size(128, 16)
    (text,) = texts_of(subject, [tokens])
    plain = Plain(subject, text)
    defined = plain.defined()
    for name, options in FORWARD.items():
        work = partial(attlas.explain, subject, text, name, **options)
        inner = partial(_inner, subject, text, name, options)
        ours, behind, peer = setup.in_turns(work, inner, plain.forward)
        off = largest_difference([work().scores], [defined[name]])
        what = f"`{name}`, {tokens} tokens"
        yield Row(what, "a plain forward", ours, peer, behind, off, goal=(1.3, 0.002))
    for name, options in BACKWARD.items():
        method = name.partition(",")[0]
        work = partial(attlas.explain, subject, text, method, **options)
        inner = partial(_inner, subject, text, method, options)
        ours, behind, peer = setup.in_turns(work, inner, plain.backward)
        off = largest_difference([work().scores], [defined[name]]) if name in defined else None
        goal = (1.4, 0.0) if name in HELD else None
        what = f"`{name}`, {tokens} tokens"
        yield Row(what, "a plain forward and backward", ours, peer, behind, off, goal=goal)
    yield from _new_lengths(setup, tokens)


def _new_lengths(setup: Setup, tokens: int) -> Iterator[Row]:
    """Texts of lengths that the model meets for the first time."""
    for name, against in {"raw_attention": "forward", "generic_relevance": "backward"}.items():
        subject = bert(setup.device, layers=setup.size(12, 2))
        texts = texts_of(subject, list(range(tokens - ROUNDS, tokens + 1)))
        known = [getattr(Plain(subject, text), against) for text in texts]
        own, plain = iter(texts), iter(known)
        ours, peer = setup.in_turns(
            lambda own=own, name=name, subject=subject: attlas.explain(subject, next(own), name),
            lambda plain=plain: next(plain)(),
        )
        what = f"`{name}`, up to {tokens} tokens, each length for the first time"
        told = "a plain forward" + (" and backward" if against == "backward" else "")
        yield Row(what, told, ours, peer)


def _inner(subject: attlas.Subject, text: str, method: str, options: dict[str, object]) -> object:
    return METHODS[method].score(one_question(subject, text), options)


class Plain:
    """The model without us."""

    def __init__(self, subject: attlas.Subject, text: str) -> None:
        self.model, self.ids = subject.model, ids_of(subject, text)
        self.choice = int(self.forward().argmax())

    @torch.no_grad()
    def forward(self) -> Tensor:
        return self.model(input_ids=self.ids).logits[0]

    def backward(self) -> Tensor:
        """The gradient of the chosen logit on the vectors of the tokens."""
        vectors = self.model.get_input_embeddings()(self.ids).detach().requires_grad_()
        logit = self.model(inputs_embeds=vectors).logits[0, self.choice]
        return torch.autograd.grad(logit, vectors)[0][0]

    def defined(self) -> dict[str, Tensor]:
        """The scores by their definitions, read at the first token, which the head reads."""
        maps, gradients = self._maps()
        size = maps[0].shape[-1]
        rolled = relevance = torch.eye(size, device=maps[0].device)
        for weights, gradient in zip(maps, gradients, strict=True):
            rolled = (weights.mean(0) + torch.eye(size, device=rolled.device)) / 2 @ rolled
            relevance = relevance + (weights * gradient).relu().mean(0) @ relevance
        vectors = self.model.get_input_embeddings()(self.ids)[0]
        slope = self.backward()
        return {
            "raw_attention": maps[-1].mean(0)[0],
            "attention_rollout": rolled[0],
            "generic_relevance": relevance[0] - torch.eye(size, device=rolled.device)[0],
            "gradient": slope.norm(dim=-1),
            "input_x_gradient": (slope * vectors).sum(-1),
        }

    def _maps(self) -> tuple[list[Tensor], list[Tensor]]:
        own = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")
        found = self.model(input_ids=self.ids, output_attentions=True)
        logit = found.logits[0, self.choice]
        gradients = torch.autograd.grad(logit, found.attentions)
        self.model.set_attn_implementation(own)
        return [each[0].detach() for each in found.attentions], [each[0] for each in gradients]

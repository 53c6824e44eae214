"""Reading the attention of one text: a plain eager forward, ours, and `output_attentions=True`.

The inner function is the tap around a plain forward; the public call also turns text into tokens
and the maps into arrays. On a GPU it leaves them there until somebody looks, as `output_attentions`
does; a last row is of both with their maps brought to the processor. Memory is what a call added in
a new process.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from comparing import Row, Setup, apart, largest_difference
from shapes import bert, ids_of, texts_of

import attlas
from attlas.models.tap.opening import tap

PEERS = {"eager": "a plain eager forward", "output_attentions": "`output_attentions=True`"}


def compare(setup: Setup) -> Iterator[Row]:
    for tokens in setup.size((128, 512), (32,)):
        ways = _ways(setup, tokens)
        taken = dict(zip(ways, setup.in_turns(*ways.values()), strict=True))
        memory = {name: apart(_megabytes, setup, name, tokens) for name in ("ours", *PEERS)}
        maps = [each[0] for each in ways["output_attentions"]()]
        off = largest_difference(ways["ours"]().weights, maps)
        for name, against in PEERS.items():
            yield Row(
                f"`subject.attention`, {tokens} tokens",
                against,
                taken["ours"],
                taken[name],
                taken["tap"],
                off,
                "of a weight",
                megabytes=memory["ours"],
                peer_megabytes=memory[name],
            )
        if setup.on_gpu:
            brought, peer = setup.in_turns(
                lambda ways=ways: ways["ours"]().weights[0],
                lambda ways=ways: [each.cpu() for each in ways["output_attentions"]()],
            )
            what = f"`subject.attention`, {tokens} tokens, looked at"
            yield Row(what, "`output_attentions=True`, brought", brought, peer)


def _ways(setup: Setup, tokens: int) -> dict[str, Callable[[], Any]]:
    ours, theirs = (bert(setup.device, layers=setup.size(12, 2)) for _ in range(2))
    theirs.model.set_attn_implementation("eager")
    (text,) = texts_of(ours, [tokens])
    ids = ids_of(ours, text)

    @torch.no_grad()
    def tapped() -> Any:
        with tap(ours.model) as seen:
            ours.model(input_ids=ids)
        return seen.weights

    @torch.no_grad()
    def eager(**given: bool) -> Any:
        found = theirs.model(input_ids=ids, **given)
        return found.attentions if given else found.logits

    return {
        "ours": partial(_attention, ours, text),
        "tap": tapped,
        "eager": eager,
        "output_attentions": partial(eager, output_attentions=True),
    }


def _attention(subject: attlas.Subject, text: str) -> attlas.Maps:
    return subject.attention(text)


def _megabytes(setup: Setup, name: str, tokens: int) -> float:
    if setup.on_gpu:
        _ways(setup, tokens)[name]()
    _ways(setup, 8)[name]()  # everything is loaded by now
    return setup.peak(_ways(setup, tokens)[name])[1]

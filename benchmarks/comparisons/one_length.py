"""32 texts of one length, explained together and one by one."""

from collections.abc import Iterator
from functools import partial

from comparing import Row, Setup, largest_difference
from shapes import bert, texts_of

import attlas
from attlas.methods import METHODS

FEW = {"samples": 64, "steps": 8, "probes": 8}  # for methods that would take minutes
LEFT_OUT = ("random_scores", "attention_flow")  # one is free, the other knows no batches


def compare(setup: Setup) -> Iterator[Row]:
    subject = bert(setup.device, layers=setup.size(12, 2))
    count, tokens = setup.size((32, 32), (2, 8))
    texts = texts_of(subject, [tokens] * count)
    for method in METHODS:
        if method.name in LEFT_OUT:
            continue
        options = {name: value for name, value in FEW.items() if name in method.options}
        work = partial(attlas.explain, subject, method=method.name, maps=False, **options)
        work(texts[:1])
        ours, together = setup.timed(partial(work, texts))
        peer, alone = setup.timed(partial(_one_by_one, work, texts))
        off = largest_difference([e.scores for e in together], [e.scores for e in alone])
        what = f"`{method.name}` of {count} texts of {tokens} tokens"
        yield Row(what, "one by one", ours, peer, difference=off)


def _one_by_one(work: partial[attlas.Explanation], texts: list[str]) -> list[attlas.Explanation]:
    return [work(text) for text in texts]

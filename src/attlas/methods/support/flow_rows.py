"""Many flows, one after another or in several processes."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic

import numpy as np
from rich.console import Console
from rich.progress import Progress

from attlas.errors import AttlasError
from attlas.methods.support.flow import Pipes
from attlas.shapes import LayerMap, TokenVector, WantedTops

PORTION = 16  # flows in one piece of work
PATIENCE = 2.0  # seconds of work before progress is shown

Piece = tuple[int, int, range]  # which pipes, from which top, to which tokens

_handed: list[Pipes] = []  # in a worker: all pipes, sent once


def flow_maps(pipes: Sequence[Pipes], wanted: WantedTops, processes: int) -> list[LayerMap]:
    """Of each of the pipes, the flow from the wanted tops to every token, each row summing to one.

    The rows of tops that are not wanted, `[pipes, top]`, are zero.
    """
    maps = [np.zeros((len(each.tops), len(each.tokens))) for each in pipes]
    pieces = _pieces(pipes, wanted)
    flows = _work_alone(pipes, pieces) if processes == 1 else _work(pipes, pieces, processes)
    for (index, top, tokens), found in zip(pieces, _show(flows, len(pieces)), strict=True):
        maps[index][top, tokens] = found
    totals = [each.sum(axis=1, keepdims=True) for each in maps]
    return [each / np.where(total > 0, total, 1) for each, total in zip(maps, totals, strict=True)]


def _pieces(pipes: Sequence[Pipes], wanted: WantedTops) -> list[Piece]:
    return [
        (int(index), int(top), range(first, min(first + PORTION, len(pipes[index].tokens))))
        for index, top in np.argwhere(wanted)
        for first in range(0, len(pipes[index].tokens), PORTION)
    ]


def _work_alone(pipes: Sequence[Pipes], pieces: Sequence[Piece]) -> Iterator[TokenVector]:
    for index, top, tokens in pieces:
        yield pipes[index].flows(top, tokens)


def _work(pipes: Sequence[Pipes], pieces: Sequence[Piece], processes: int) -> Iterator[TokenVector]:
    """The flows of all pieces, in their order; workers are fresh processes, which hold no model."""
    workers = ProcessPoolExecutor(processes, get_context("spawn"), _receive, (pipes,))
    try:
        yield from workers.map(_flows, pieces)
    except Exception as problem:
        raise AttlasError(
            f"a worker process of attention_flow failed ({type(problem).__name__}: {problem}); "
            "a script that asks for processes needs `if __name__ == '__main__':`, "
            "and processes=1 needs no workers"
        ) from problem
    finally:
        workers.shutdown(cancel_futures=True)


def _receive(pipes: Sequence[Pipes]) -> None:
    _handed[:] = pipes


def _flows(piece: Piece) -> TokenVector:
    index, top, tokens = piece
    return _handed[index].flows(top, tokens)


def _show(flows: Iterable[TokenVector], count: int) -> Iterator[TokenVector]:
    """The same flows, with a bar on a terminal's stderr once they have taken a while."""
    console, begun = Console(stderr=True), monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("attention_flow", total=count, visible=False)
        for found in flows:
            yield found
            progress.update(task, advance=1, visible=monotonic() - begun > PATIENCE)

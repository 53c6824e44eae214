"""Flows of whole maps: those that need not be searched for one by one, and the search for others.

Of one or two layers the largest flow is a sum. Of more, no flow is above what leaves its start or
what arrives at its token, and in deep models most reach one of the two. A hub proves it: amounts,
one for each position of a level in the middle. If every amount can reach the hub from a start, and
the hub can fill a token, then the flow between these two is at least what arrives at the token.
That takes one search for each start and one for each token, instead of one for each pair.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic

import numpy as np
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from attlas.errors import AttlasError
from attlas.methods.support.flow import SCALE, Pipes
from attlas.progress import Step, Watch, watched
from attlas.shapes import Capacities, ChosenTops, LayerMap, TokenVector

PORTION = 16  # flows in one job
FEWEST = 8  # starts: of fewer, each pair is searched for
LEVELS = 3  # of hubs, from the middle on

Hub = tuple[int, np.ndarray]  # its level, and the amount at each position
Job = tuple[int, int, Sequence[int]]  # which network, from which top, to which tokens

_networks: list[Pipes] = []  # in a worker process: all networks, sent once


def flow_maps(pipes: Sequence[Pipes], tops: ChosenTops, processes: int) -> list[LayerMap]:
    """For each network, the flow from these tops to every token, with rows that sum to one.

    `tops` says which tops to compute, `[network, top]`; the rows of all others are zero.
    """
    maps = [np.zeros((len(each.tops), len(each.tokens))) for each in pipes]
    with watched(None, "attention_flow") as watch:
        for each, network, chosen in zip(maps, pipes, tops, strict=True):
            each[chosen] = _known(network, np.flatnonzero(chosen).tolist())
        jobs = list(_jobs(maps))
        flows = _work_alone(pipes, jobs) if processes == 1 else _work(pipes, jobs, processes)
        for (index, top, tokens), flow in zip(jobs, _show(flows, len(jobs), watch), strict=True):
            maps[index][top, tokens] = flow
    totals = [each.sum(axis=1, keepdims=True) for each in maps]
    return [each / np.where(total > 0, total, 1) for each, total in zip(maps, totals, strict=True)]


def _known(network: Pipes, tops: Sequence[int]) -> LayerMap:
    """The flows from these tops that need not be searched for one by one; NaN for all others."""
    if not network.joins or not tops:
        return np.full((len(tops), len(network.tokens)), np.nan)
    return shared_flows(network.joins, tops) / SCALE


def _jobs(maps: Sequence[LayerMap]) -> Iterator[Job]:
    """What is still to be searched for, in portions."""
    for index, each in enumerate(maps):
        for top in np.flatnonzero(np.isnan(each).any(axis=1)).tolist():
            tokens = np.flatnonzero(np.isnan(each[top])).tolist()
            for first in range(0, len(tokens), PORTION):
                yield index, top, tokens[first : first + PORTION]


def _work_alone(pipes: Sequence[Pipes], jobs: Sequence[Job]) -> Iterator[TokenVector]:
    for index, top, tokens in jobs:
        yield pipes[index].flows(top, tokens)


def _work(pipes: Sequence[Pipes], jobs: Sequence[Job], processes: int) -> Iterator[TokenVector]:
    """The flows of all jobs, in order; workers are new processes, which hold no model."""
    workers = ProcessPoolExecutor(processes, get_context("spawn"), _receive, (pipes,))
    try:
        yield from workers.map(_flows, jobs)
    except Exception as problem:
        raise AttlasError(
            f"a worker process of attention_flow failed ({type(problem).__name__}: {problem}); "
            "a script that asks for processes needs `if __name__ == '__main__':`, "
            "and processes=1 needs no workers"
        ) from problem
    finally:
        workers.shutdown(cancel_futures=True)


def _receive(pipes: Sequence[Pipes]) -> None:
    _networks[:] = pipes


def _flows(job: Job) -> TokenVector:
    index, top, tokens = job
    return _networks[index].flows(top, tokens)


def _show(flows: Iterable[TokenVector], count: int, watch: Watch) -> Iterator[TokenVector]:
    """The same flows; whoever watches is told how many there are, and how long they will take."""
    begun = monotonic()
    for done, flow in enumerate(flows, 1):
        yield flow
        left = (monotonic() - begun) / done * (count - done)
        watch(Step("attention_flow", done, count, left))


def shared_flows(joins: Sequence[Capacities], tops: Sequence[int]) -> LayerMap:
    """The flow from each of these tops to every token, `[top, token]`; NaN where none is proven.

    `joins` are the capacities between levels, lowest first, in whole units, as the flows are. A
    proven flow misses the largest one by at most one unit for each position.
    """
    if len(joins) == 1:
        return joins[0][tops].astype(float)
    if len(joins) == 2:
        lower, upper = joins
        return np.stack([np.minimum(upper[top][:, None], lower).sum(axis=0) for top in tops]) + 0.0
    found = np.full((len(tops), joins[0].shape[1]), np.nan)
    if len(joins) < 4 or len(tops) < FEWEST:
        return found
    for hub in _hubs(joins, tops):
        found = _prove(joins, tops, hub, found)
        if not np.isnan(found).any():
            break
    return found


def _hubs(joins: Sequence[Capacities], tops: Sequence[int]) -> Iterator[Hub]:
    """Hubs to try, of even amounts and of those that rollout sends there, from the middle on."""
    middle, size = len(joins) / 2, len(joins[0])
    levels = sorted(range(2, len(joins) - 1), key=lambda level: abs(level - middle))
    for level in levels[:LEVELS]:
        rollout = np.full(len(tops), 1 / len(tops)) @ _shares(joins[-1])[tops]
        for join in reversed(joins[level:-1]):
            rollout = rollout @ _shares(join)
        total = min(int(joins[-1][top].sum(dtype=np.int64)) for top in tops)
        for shares in (np.full(size, 1 / size), rollout):
            amounts = np.floor(shares * total).astype(np.int32)
            amounts[: max(total - int(amounts.sum(dtype=np.int64)), 0)] += 1
            yield level, amounts


def _shares(join: Capacities) -> LayerMap:
    shares: LayerMap = join / np.maximum(join.sum(axis=1, keepdims=True, dtype=np.int64), 1)
    return shares


def _prove(joins: Sequence[Capacities], tops: Sequence[int], hub: Hub, found: LayerMap) -> LayerMap:
    """Fill in what this hub proves of the flows that are not known yet."""
    level, amounts = hub
    unknown = np.isnan(found)
    above, below = _ladder(joins[level:-1]), _ladder(joins[1:level])
    size, most = len(amounts), int(amounts.sum(dtype=np.int64))
    leaves = joins[-1].sum(axis=1, dtype=np.int64)[tops]
    arrives = joins[0].sum(axis=0, dtype=np.int64)
    above.data[-size:] = below.data[:size] = amounts
    reaches = np.zeros(len(tops), dtype=bool)
    for row in np.flatnonzero(unknown.any(axis=1)).tolist():
        above.data[:size] = joins[-1][tops[row]]
        reaches[row] = _search(above) == most
    fills = np.zeros(len(arrives))
    for token in np.flatnonzero(unknown[reaches].any(axis=0)):
        below.data[-size:] = joins[0][:, token]
        fills[token] = _search(below)
    bounds = np.minimum(leaves[:, None], arrives)
    proven = reaches[:, None] & (bounds - fills <= size)
    return np.where(unknown & proven, fills, found)


def _ladder(joins: Sequence[Capacities]) -> csr_array:
    """A start, the levels that these joins connect, and an end.

    The first capacities are those from the start to the upper level, the last those from the lower
    level to the end; they are to be filled in.
    """
    size = len(joins[0])
    empty = csr_array((size, size), dtype=np.int32)
    once = np.ones((1, size), dtype=np.int32)
    count = len(joins) + 1
    blocks: list[list[csr_array | None]] = [[None] * (count + 2) for _ in range(count + 2)]
    blocks[0][0] = blocks[-1][-1] = csr_array((1, 1), dtype=np.int32)
    for level in range(1, count + 1):
        blocks[level][level] = empty
    for level, join in enumerate(reversed(joins), 1):
        blocks[level][level + 1] = csr_array(join)
    blocks[0][1], blocks[count][count + 1] = csr_array(once), csr_array(once.T)
    return block_array(blocks, format="csr")


def _search(ladder: csr_array) -> int:
    return int(maximum_flow(ladder, 0, ladder.shape[0] - 1, method="dinic").flow_value)

"""Planned attention: whether torch may use the fused attention that cuDNN plans for each shape."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch

from attlas.restoring import Placed, placing

_planless: list[Placed] = []  # the open blocks of `unplanned_attention`
_planned: list[bool] = []  # the setting before the first of them
_plans_guard = threading.RLock()


@contextmanager
def unplanned_attention() -> Iterator[None]:
    """Keep torch from using cuDNN's fused attention within the block.

    cuDNN plans, for up to a second, for every new shape of a batch, and an audit has thousands.
    The setting is one for the process: the last block to end restores it.
    """
    with placing() as block:
        plan_nothing(block)
        yield


@contextmanager
def planned_attention() -> Iterator[None]:
    """Let torch use cuDNN's fused attention within the block after all, if it was allowed to.

    For a long input it is about twice as fast; planning pays if the input's length comes again.
    """
    with _plans_guard:
        again = bool(_planless) and _planned[0]
    torch.backends.cuda.enable_cudnn_sdp(again or torch.backends.cuda.cudnn_sdp_enabled())
    try:
        yield
    finally:
        with _plans_guard:
            if again and _planless:
                torch.backends.cuda.enable_cudnn_sdp(False)


def plan_nothing(block: Placed) -> None:
    """Keep torch from planning until the block is undone."""
    block.note(partial(_plan_again, block))
    with _plans_guard:
        if not _planless:
            _planned[:] = [torch.backends.cuda.cudnn_sdp_enabled()]
        _planless.append(block)
        torch.backends.cuda.enable_cudnn_sdp(False)


def _plan_again(block: Placed) -> None:
    with _plans_guard:
        if _planless == [block]:
            torch.backends.cuda.enable_cudnn_sdp(_planned[0])
        if block in _planless:
            _planless.remove(block)

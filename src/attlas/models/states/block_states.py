"""States: what the blocks of a model are handed, in the graph of what follows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.facts.sites import find_block
from attlas.results import Site

if TYPE_CHECKING:
    from attlas.models.subject import Subject

STREAM = "hidden_states"


@contextmanager
def block_states(subject: "Subject", places: Sequence[tuple[Site, str]]) -> Iterator[list[Tensor]]:
    """Within the block, the list holds what the block of each of these sites was handed.

    The sites are in the order of call, one to a block; a block that is called again and again has
    as many. Where nothing below asks for a gradient the graph begins at the first.
    """
    held: list[Tensor] = []

    def hold(block: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stream = args[0] if args else kwargs.get(STREAM)
        if not isinstance(stream, Tensor):
            raise UnsupportedModelError(
                f"{type(block).__name__} is not handed its stream as {STREAM}, so it cannot be read"
            )
        held.append(stream if stream.requires_grad else stream.detach().requires_grad_())
        return ((held[-1], *args[1:]), kwargs) if args else (args, {**kwargs, STREAM: held[-1]})

    with ExitStack() as stack:
        blocks = [find_block(subject.model, path) for _, path in places]
        for block in {id(each): each for each in blocks}.values():
            handle = block.register_forward_pre_hook(hold, with_kwargs=True)
            stack.callback(handle.remove)
        yield held

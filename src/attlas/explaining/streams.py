"""Texts without an end: they are explained in chunks, and nothing stays open between these."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from attlas.errors import AttlasError, UsageError
from attlas.explaining.method_call import MethodCall, first_that_runs, methods_to_try
from attlas.methods import Method
from attlas.models.encoding.request import Request
from attlas.results import Explanation

Item = TypeVar("Item")
# Texts of similar length share batches, and are looked for within a chunk: so many texts fill a
# batch of each usual length, and their explanations still take little memory.
CHUNK = 512
CHUNK_WITH_MAPS = 32  # the maps of a text may take many megabytes


@dataclass(frozen=True)
class TextStream:
    """How each chunk of texts is explained; what cannot be asked is refused when this is made.

    `explain_list` takes a list of texts and the name of a method, then what was asked as keywords.
    """

    explain_list: Callable[..., list[Explanation]]
    method: str | None
    maps: bool
    asked: Mapping[str, Any]  # target, contrast, position, prefix, chat, truncate, licence
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        request = shared_request(self.asked)
        first = methods_to_try(self.method, maps=self.maps)[0]
        MethodCall(first, request, self.options, self.maps)

    def explain(self, texts: Iterator[Any]) -> Iterator[Explanation]:
        """The explanations in the order of the texts, which are taken a chunk at a time."""
        method, start = self.method, 0
        notes: tuple[str, ...] = ()
        for chunk in chunks(texts, CHUNK_WITH_MAPS if self.maps else CHUNK):
            try:
                chosen, why, explained = first_that_runs(method, self._run(chunk), maps=self.maps)
            except AttlasError as problem:
                problem.add_note(f"among texts {start + 1} to {start + len(chunk)} of the iterator")
                raise
            method, notes, start = chosen.name, notes or why, start + len(chunk)
            for each in explained:
                yield replace(each, notes=(*each.notes, *notes)) if notes else each

    def _run(self, texts: list[Any]) -> "Callable[[Method, tuple[str, ...]], Explained]":
        def run(chosen: Method, notes: tuple[str, ...]) -> Explained:
            asked = {**self.asked, "maps": self.maps, **self.options}
            return chosen, notes, self.explain_list(texts, chosen.name, **asked)

        return run


Explained = tuple[Method, tuple[str, ...], list[Explanation]]


def shared_request(asked: Mapping[str, Any]) -> Request:
    """What is asked about each of texts whose number is not known; a list has one for each text."""
    for name in ("target", "contrast", "position", "prefix"):
        value = asked.get(name)
        if isinstance(value, list) or getattr(value, "ndim", 0) > 0:
            raise UsageError(
                f"{name} is a list, which holds one for each text of a list of texts; "
                f"here give one {name} for all texts"
            )
    return Request(**{name: value for name, value in asked.items() if name != "licence"})


def chunks(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """So many items at a time, as a list."""
    while chunk := list(islice(items, size)):
        yield chunk

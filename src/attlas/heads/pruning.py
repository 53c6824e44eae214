"""The verb `prune`: switch heads off in a `with` block, or remove them from the weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import index
from typing import Any, Literal, overload

from attlas.errors import UnknownNameError, UsageError
from attlas.models.encoding.encode_input import sample_inputs
from attlas.models.intervening.removing_heads import (
    check_smaller,
    find_modules,
    first_output,
    smaller_copy,
)
from attlas.models.subject import Subject, check_subject
from attlas.models.tap.edits import Edit, scale
from attlas.models.tap.opening import is_tapped
from attlas.results import Site

Heads = Mapping[Any, Any] | Iterable[Any]
Chosen = Mapping[Site, tuple[int, ...]]
_MARK = ", pruned"


@overload
def prune(
    subject: Subject, heads: Heads, *, permanently: Literal[False] = False
) -> AbstractContextManager[Subject]: ...


@overload
def prune(subject: Subject, heads: Heads, *, permanently: Literal[True]) -> Subject: ...


def prune(
    subject: Subject, heads: Heads, *, permanently: bool = False
) -> AbstractContextManager[Subject] | Subject:
    """Switch heads off within a `with` block, or remove them in a smaller copy of the model.

    `heads` are given by site, `{"encoder.3": [0, 5]}`, or one by one, `[("encoder.3", 0), ...]`; a
    site is its name or `(kind, layer)`. In the block the attention of these heads is multiplied by
    zero. `permanently` returns a new subject whose model lacks the weights of these heads; the old
    subject stays as it is.
    """
    check_subject(subject, "prune")
    chosen = _choose(subject.sites, heads)
    return _removed(subject, chosen) if permanently else _switched_off(subject, chosen)


@contextmanager
def _switched_off(subject: Subject, chosen: Chosen) -> Iterator[Subject]:
    with subject.tap(_edits(chosen), sites=()):
        yield subject


def _edits(chosen: Chosen) -> list[Edit]:
    off = scale(0.0)
    return [off.at(kind=site.kind, layer=site.layer, heads=each) for site, each in chosen.items()]


def _removed(subject: Subject, chosen: Chosen) -> Subject:
    _check_removable(subject, chosen)
    places = {site.name: path for site, path in subject.places}
    removed = find_modules(places, {site.name: heads for site, heads in chosen.items()})
    model = smaller_copy(subject.model, removed)
    inputs = sample_inputs(subject)
    with _switched_off(subject, chosen):
        expected = first_output(subject.model, inputs)
    check_smaller(model, inputs, expected)
    name = f"{subject.name.removesuffix(_MARK)}{_MARK}"
    task = subject.task.name if subject.task else None
    return Subject(model, subject, name=name, task=task)


def _check_removable(subject: Subject, chosen: Chosen) -> None:
    if is_tapped(subject.model):
        raise UsageError(
            f"{subject.name} is changed by an open with block: remove heads outside of it"
        )
    for site, heads in chosen.items():
        if len(heads) == site.heads:
            raise UsageError(
                f"all {site.heads} heads of {site.name} cannot be removed: one has to stay; "
                "a with block can switch all of them off"
            )


def _choose(sites: Sequence[Site], heads: Heads) -> Chosen:
    """The requested heads of each site, sorted, without repeats."""
    pairs = heads.items() if isinstance(heads, Mapping) else [_pair(each) for each in heads]
    chosen: dict[Site, set[int]] = {}
    for place, requested in pairs:
        site = _site(sites, place)
        numbers = requested if isinstance(requested, Iterable) else [requested]
        chosen.setdefault(site, set()).update(_head(site, each) for each in numbers)
    return {site: tuple(sorted(chosen[site])) for site in sites if chosen.get(site)}


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
        raise UsageError(
            f"heads are pairs of a site and a head, such as ('encoder.3', 0), or a dictionary, "
            f"such as {{'encoder.3': [0, 5]}}; not {item!r}"
        )
    return item[0], item[1]


def _site(sites: Sequence[Site], place: Any) -> Site:
    name = place.name if isinstance(place, Site) else place
    if isinstance(place, tuple) and len(place) == 2:
        name = ".".join(map(str, place))
    known = {site.name: site for site in sites}
    if name not in known:
        raise UnknownNameError("site", str(name), known)
    return known[name]


def _head(site: Site, head: Any) -> int:
    try:
        number = index(head)
    except TypeError as problem:
        raise UsageError(f"a head is a number, not {head!r}") from problem
    if not -site.heads <= number < site.heads:
        raise UsageError(f"unknown head {number} at {site.name}: it has 0 to {site.heads - 1}")
    return number % site.heads

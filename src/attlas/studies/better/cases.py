"""The ways of training that the study of better attention compares, and each with which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attlas.training.examples import PARTS_OF

PLAIN, PLANTED, UNPLANTED = "labels alone", "shortcut planted", "words planted at random"
SHORTCUTS, RECURRENT = "shortcuts", "sst"
LSTM, ORTHOGONAL = "lstm", "orthogonal_lstm"
ENCODER, IDENTIFIABLE = "encoder", "identifiable_encoder"


@dataclass(frozen=True)
class BetterCase:
    """One way of training: its name, its objectives, and a model that is trained anew, if any."""

    name: str
    objectives: tuple[str, ...] = ()
    model: str = ""  # the base is trained on if there is none


_SHARED = (
    "conicity:weight=1",
    "disagreement:weight=0.5",
    "masked:weight=1",
    "permuted_keys:weight=1",
    "adversarial_keys:weight=1",
)
_MARKED = ("rationale:weight=1", *_SHARED)
_HIDING = "deception:weight=1"
_OF_SET: Mapping[str, tuple[str, ...]] = {
    RECURRENT: ("rationale:weight=0.5", "conicity:weight=0.5", "masked:weight=1", _HIDING),
    SHORTCUTS: (*_SHARED, _HIDING),  # nobody marked the planted words
    **dict.fromkeys(PARTS_OF, (*_MARKED, _HIDING)),
}
# Models that are compared with another model than the one of the labels alone.
_BESIDE = {ORTHOGONAL: LSTM, IDENTIFIABLE: ENCODER}


def cases_of(data: str, objectives: Sequence[str] = ()) -> list[BetterCase]:
    """The ways of training on a set: with the labels alone, then with each objective.

    Each set has objectives of its own; named ones are those of them that are trained for. Models
    that are built otherwise come last, each behind the one that it is compared with.
    """
    model = "bilstm" if data == RECURRENT else ""
    chosen = [
        BetterCase(each.partition(":")[0], (each,), model)
        for each in _OF_SET.get(data, (*_MARKED, _HIDING))
        if not objectives or each in objectives
    ]
    if data == SHORTCUTS:
        return [BetterCase(UNPLANTED), BetterCase(PLANTED), *chosen]
    built = (LSTM, ORTHOGONAL, ENCODER, IDENTIFIABLE)
    others = built if data == RECURRENT and not objectives else ()
    return [BetterCase(PLAIN, (), model), *chosen, *(BetterCase(each, (), each) for each in others)]


def is_planted(case: str) -> bool:
    """Whether the planted words give the labels away."""
    return case != UNPLANTED


def baseline_of(data: str, case: str) -> str:
    """The way of training that a case is compared with."""
    return _BESIDE.get(case, PLANTED if data == SHORTCUTS else PLAIN)


def is_baseline(case: str) -> bool:
    """Whether others are compared with this case, and it with none."""
    return case in (PLAIN, PLANTED, UNPLANTED, *_BESIDE.values())

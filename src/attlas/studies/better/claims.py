"""The claims of the study of better attention, decided on one record for each seed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attlas.results import Claim
from attlas.studies.better.cases import (
    IDENTIFIABLE,
    ORTHOGONAL,
    PLAIN,
    PLANTED,
    RECURRENT,
    SHORTCUTS,
    BetterCase,
    baseline_of,
    is_baseline,
)
from attlas.studies.better.models import SHOWN, WEIGHTS
from attlas.studies.support.findings import (
    Rule,
    at_least,
    at_most,
    decided,
    near,
    over_seeds,
    untested,
)

WIKI, HIDING = "sst_wiki", "deception"
MOHANKUMAR, PRUTHI = "Mohankumar et al. 2020", "Pruthi et al. 2020"
BASTINGS, BHARDWAJ = "Bastings et al. 2022", "Bhardwaj et al. 2021"
Cases = Mapping[str, Sequence[Mapping[str, Any]]]  # by case, one record for each seed
Found = Mapping[str, Cases]  # by data
Read = Callable[[Mapping[str, Any]], float | None]
LESS = "The figure is {}, less that {}; {} seeds."
FEWEST = 2  # seeds on which a claim is decided


def s_of(each: Mapping[str, Any]) -> float | None:
    """s of the weights, read in the better of two ways, as the verdict does."""
    read = [each["methods"][name].get("s") for name in WEIGHTS if name in each["methods"]]
    return max((one for one in read if one is not None), default=None)


def auprc_of(each: Mapping[str, Any]) -> float | None:
    """The AUPRC of the words that people marked, by the attention of the last layer."""
    found: float | None = each["methods"].get(WEIGHTS[0], {}).get("AUPRC")
    return found


def accuracy_of(each: Mapping[str, Any]) -> float:
    """The accuracy on the test texts."""
    return float(each["accuracy"])


class Records:
    """The figures of all models, by set and case, one record for each seed."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}

    def add(self, seed: int, data: str, case: BetterCase, record: Mapping[str, Any]) -> None:
        """One more model."""
        own = self.found.setdefault(data, {}).setdefault(case.name, [])
        own.append({"seed": seed, **record})

    def seeds(self) -> list[int]:
        """All seeds, in order."""
        every = (one for cases in self.found.values() for each in cases.values() for one in each)
        return sorted({int(one["seed"]) for one in every})


WORDS: Mapping[Read, str] = {
    accuracy_of: "the accuracy",
    s_of: "s",
    auprc_of: "the AUPRC of the marked words",
}


def gains(found: Found, data: str, case: str, read: Read) -> list[float]:
    """Seed by seed, how much a figure is higher in a case than in the one it is compared with."""
    before, after = (
        {one["seed"]: read(one) for one in found[data][name]}
        for name in (baseline_of(data, case), case)
    )
    pairs = [(before[seed], after[seed]) for seed in before if seed in after]
    return [other - one for one, other in pairs if one is not None and other is not None]


def claims_on(found: Found) -> list[Claim]:
    """What was published or is hoped for, decided on one record for each seed."""
    claims = [*_on_conicity(found), *_on_rationales(found), *_on_deception(found)]
    claims += [*_on_faithfulness(found), *_on_shortcuts(found), *_on_keys(found)]
    return claims or [untested("Training makes attention better", "hope", "no set was named")]


def compared_cases(found: Found, case: str | None = None) -> Iterator[tuple[str, str]]:
    """Each set and case, or this case, beside which the one it is compared with was trained."""
    for data, cases in found.items():
        for each in cases:
            if case in (None, each) and not is_baseline(each) and baseline_of(data, each) in cases:
                yield data, each


def _decidable(found: Found, read: Read, case: str | None = None) -> Iterator[tuple[str, str]]:
    """Each set and case, or this case, of which a figure is known for enough seeds."""
    for data, each in compared_cases(found, case):
        if len(gains(found, data, each, read)) >= FEWEST:
            yield data, each


def _has(found: Found, data: str, case: str) -> bool:
    return (data, case) in _decidable(found, accuracy_of)


def _on_conicity(found: Found) -> list[Claim]:
    said = "Training against conicity brings it from about .68 to about .2 on SST"
    cost = "It costs at most 2.5 points of accuracy"
    if not _has(found, RECURRENT, "conicity"):
        return [untested(said, MOHANKUMAR, f"SST was not trained on with {FEWEST} seeds")]
    most = at_least(-0.025)
    claims = [
        _reached(found, said, "conicity", 0.20, PLAIN),
        _changed(found, RECURRENT, "conicity", accuracy_of, cost, MOHANKUMAR, most, -0.0184),
    ]
    if _has(found, RECURRENT, ORTHOGONAL):
        said = "The orthogonal LSTM has a conicity of about .28 on SST"
        cost = "The orthogonal LSTM costs at most 2.5 points of accuracy"
        claims += [
            _reached(found, said, ORTHOGONAL, 0.28, baseline_of(RECURRENT, ORTHOGONAL)),
            _changed(found, RECURRENT, ORTHOGONAL, accuracy_of, cost, MOHANKUMAR, most, -0.0174),
        ]
    if _has(found, RECURRENT, IDENTIFIABLE):
        said = "The identifiable encoder layer is as accurate as the usual one"
        rule = at_least(-0.01)
        claims += [_changed(found, RECURRENT, IDENTIFIABLE, accuracy_of, said, BHARDWAJ, rule)]
    return claims


def _reached(found: Found, said: str, case: str, published: float, beside: str) -> Claim:
    after, before = (
        over_seeds([each["conicity"] for each in found[RECURRENT][name]]) for name in (case, beside)
    )
    told = f"With {beside} it is {before.value:.2f}."
    rule = near(published, 0.10)
    return decided(said, MOHANKUMAR, rule, after, published=published, found=told)


def _changed(
    found: Found,
    data: str,
    case: str,
    read: Read,
    said: str,
    source: str,
    rule: Rule,
    published: float | None = None,
) -> Claim:
    """A claim on how much a figure changes by a way of training."""
    what = WORDS[read]
    beside = baseline_of(data, case)
    more = gains(found, data, case, read)
    told = LESS.format(what, f"with {beside}" if beside == PLAIN else f"of “{beside}”", len(more))
    return decided(said, source, rule, over_seeds(more), found=told, published=published)


def _on_rationales(found: Found) -> list[Claim]:
    said = "Training on rationales brings the attention nearer to held-out ones ({})"
    source = "Strout et al. 2019, and others"
    return [
        _changed(found, data, case, auprc_of, said.format(data), source, at_least(0.0))
        for data, case in _decidable(found, auprc_of, "rationale")
    ]


def _on_deception(found: Found) -> list[Claim]:
    said = "A model that is trained to hide the words it uses stays as accurate ({})"
    claims = []
    if not _has(found, WIKI, HIDING):
        why = f"{WIKI} was not trained on with {FEWEST} seeds"
        claims = [untested(said.format(WIKI), PRUTHI, why)]
    told = "The test tells the deceptive model from the honest one: its weights find less of what "
    told += "matters ({})"
    for data, case in _decidable(found, s_of, HIDING):
        claims += [
            _changed(found, data, case, accuracy_of, said.format(data), PRUTHI, at_least(-0.02)),
            _changed(found, data, case, s_of, told.format(data), "the verdict", at_most(-0.1)),
        ]
    return claims


def _on_faithfulness(found: Found) -> list[Claim]:
    said = "{} makes the weights more faithful ({})"
    return [
        _changed(found, data, case, s_of, said.format(case, data), "hope", at_least(0.0))
        for data, case in _decidable(found, s_of)
        if case != HIDING
    ]


def _on_shortcuts(found: Found) -> list[Claim]:
    if PLANTED not in found.get(SHORTCUTS, {}):
        return [untested("Attention shows a planted shortcut", BASTINGS, "not asked")]
    claims = []
    for method in SHOWN:
        read = [each["methods"].get(method) for each in found[SHORTCUTS][PLANTED]]
        known = [each["AUPRC"] for each in read if each and each["AUPRC"] is not None]
        if len(known) >= FEWEST:
            claims.append(
                decided(
                    f"{method} puts a planted shortcut first",
                    BASTINGS,
                    at_least(0.8),
                    over_seeds(known),
                    found="The figure is one over the rank of the planted word, a mean over texts; "
                    f"{len(known)} seeds.",
                )
            )
    return claims


def _on_keys(found: Found) -> list[Claim]:
    said = "Training with {} improves the model ({})"
    return [
        _changed(
            found,
            data,
            case,
            accuracy_of,
            said.format(case.replace("_", " "), data),
            "poster, future work",
            at_least(0.0),
        )
        for name in ("permuted_keys", "adversarial_keys")
        for data, case in _decidable(found, accuracy_of, name)
    ]

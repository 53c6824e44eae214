"""The claims of the study of better attention, decided on one record for each seed."""

from collections.abc import Mapping, Sequence
from typing import Any

from attlas.results import Claim
from attlas.studies.better.models import (
    PLAIN,
    PLANTED,
    RECURRENT,
    SHORTCUTS,
    SHOWN,
    UNPLANTED,
    WEIGHTS,
    gains,
)
from attlas.studies.support.findings import (
    at_least,
    at_most,
    decided,
    near,
    over_seeds,
    untested,
)

MOVIES, WIKI = "eraser_movies", "sst_wiki"
MOHANKUMAR, PRUTHI = "Mohankumar et al. 2020", "Pruthi et al. 2020"
Found = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]  # by data and case, for each seed


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


def claims_on(found: Found) -> list[Claim]:
    """What was published or is hoped for, decided on one record for each seed."""
    claims = [*_on_conicity(found), *_on_rationales(found), *_on_deception(found)]
    claims += [*_on_faithfulness(found), *_on_shortcuts(found), *_on_keys(found)]
    return claims or [untested("Training makes attention better", "hope", "no set was named")]


def _has(found: Found, data: str, case: str) -> bool:
    return case in found.get(data, {}) and (PLAIN in found[data] or UNPLANTED in found[data])


def _on_conicity(found: Found) -> list[Claim]:
    said = "Training against conicity brings it from about .68 to about .2 on SST"
    cost = "It costs at most 2.5 points of accuracy"
    if not _has(found, RECURRENT, "conicity"):
        return [untested(said, MOHANKUMAR, "SST was not among the data")]
    after = [each["conicity"] for each in found[RECURRENT]["conicity"]]
    before = over_seeds([each["conicity"] for each in found[RECURRENT][PLAIN]])
    return [
        decided(
            said,
            MOHANKUMAR,
            near(0.20, 0.10),
            over_seeds(after),
            published=0.20,
            found=f"With the labels alone it is {before.value:.2f}.",
        ),
        decided(
            cost,
            MOHANKUMAR,
            at_least(-0.025),
            over_seeds(gains(found, RECURRENT, "conicity", accuracy_of)),
            published=-0.0184,
            found="The figure is the accuracy, less that with the labels alone.",
        ),
    ]


def _on_rationales(found: Found) -> list[Claim]:
    claims = []
    for data in found:
        if _has(found, data, "rationale"):
            claims.append(
                decided(
                    f"Training on rationales brings the attention nearer to held-out ones ({data})",
                    "Strout et al. 2019, and others",
                    at_least(0.0),
                    over_seeds(gains(found, data, "rationale", auprc_of)),
                    found="The figure is the AUPRC of the marked words, less that with the labels "
                    "alone.",
                )
            )
    return claims


def _on_deception(found: Found) -> list[Claim]:
    if not _has(found, WIKI, "deception"):
        said = "A model that is trained to hide the words it uses stays as accurate"
        return [untested(said, PRUTHI, "sst_wiki was not among the data")]
    return [
        decided(
            "A model that is trained to hide the words it uses stays as accurate",
            PRUTHI,
            at_least(-0.02),
            over_seeds(gains(found, WIKI, "deception", accuracy_of)),
            found="The figure is its accuracy, less that of the honest one.",
        ),
        decided(
            "The test tells the deceptive model from the honest one: its weights find less of "
            "what matters",
            "the verdict",
            at_most(-0.1),
            over_seeds(gains(found, WIKI, "deception", s_of)),
            found="The figure is s, less that of the honest one.",
        ),
    ]


def _on_faithfulness(found: Found) -> list[Claim]:
    claims = []
    for data, cases in found.items():
        for case in cases:
            if case in (PLAIN, "deception") or PLAIN not in cases or data == SHORTCUTS:
                continue
            more = gains(found, data, case, s_of)
            if not more:
                continue
            claims.append(
                decided(
                    f"{case} makes the weights more faithful ({data})",
                    "hope",
                    at_least(0.0),
                    over_seeds(more),
                    found="The figure is s, less that with the labels alone.",
                )
            )
    return claims


def _on_shortcuts(found: Found) -> list[Claim]:
    if not _has(found, SHORTCUTS, PLANTED):
        return [untested("Attention shows a planted shortcut", "Bastings et al. 2022", "not asked")]
    claims = []
    for method in SHOWN:
        read = [each["methods"].get(method) for each in found[SHORTCUTS][PLANTED]]
        known = [each["AUPRC"] for each in read if each and each["AUPRC"] is not None]
        if known:
            claims.append(
                decided(
                    f"{method} puts a planted shortcut first",
                    "Bastings et al. 2022",
                    at_least(0.8),
                    over_seeds(known),
                    found="The figure is one over the rank of the planted word, a mean over texts.",
                )
            )
    return claims


def _on_keys(found: Found) -> list[Claim]:
    claims = []
    for case in ("permuted_keys", "adversarial_keys"):
        if _has(found, MOVIES, case):
            claims.append(
                decided(
                    f"Training with {case.replace('_', ' ')} improves the model",
                    "poster, future work",
                    at_least(0.0),
                    over_seeds(gains(found, MOVIES, case, accuracy_of)),
                    found="The figure is the accuracy, less that with the labels alone.",
                )
            )
    return claims

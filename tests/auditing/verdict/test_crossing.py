"""Cross-fitting: who is chosen on one half is tested on the other, paired, and never by itself."""

import numpy as np
import pytest

from attlas.auditing.verdict.crossing import (
    CONTROL,
    OTHER,
    REFERENCE,
    SPLITS,
    WEIGHTS,
    Roles,
    cross,
    pool,
)
from attlas.errors import UsageError
from attlas.mathematics.grouping import halves
from attlas.mathematics.standing import Locations

COUNT = 20
ROLES = Roles(
    ("raw", "rollout"),
    ("position", OTHER),
    ("gradient", "from mask"),
    frozenset({("from mask", "mask")}),
)


def evidence(**methods):
    """Two removals under which every text has the same to find."""
    values = {name: np.broadcast_to(each, COUNT).astype(float) for name, each in methods.items()}
    ones = np.ones(COUNT)
    return {removal: Locations(ones, 2 * ones, values) for removal in ("delete", "mask")}


KNOWN = evidence(
    raw=0.2, rollout=0.7, position=0.1, gradient=0.5,
    **{"from mask": 0.9, f"{OTHER} raw": 0.6, f"{OTHER} rollout": 0.3},
)  # fmt: skip


def test_the_best_of_each_role_is_tested():
    crossed = pool(cross(KNOWN, ROLES, None, 0))
    assert crossed.name_of(WEIGHTS) == "rollout"
    # Another text's scores are those of the method that was chosen.
    assert crossed.name_of(CONTROL, "mask") == f"{OTHER} rollout"
    assert crossed.evidence["mask"].methods[CONTROL] == pytest.approx(0.3)


def test_no_reference_is_judged_by_its_own_removal():
    crossed = pool(cross(KNOWN, ROLES, None, 0))
    assert crossed.name_of(REFERENCE, "delete") == "from mask"
    assert crossed.name_of(REFERENCE, "mask") == "gradient"
    assert crossed.evidence["mask"].methods[REFERENCE] == pytest.approx(0.5)


def test_a_method_is_tested_on_the_texts_that_it_was_not_chosen_on():
    """Each of two methods is right on one half: chosen there, it knows nothing of the other."""
    first, _ = halves(COUNT, None, 0)
    inside = np.isin(np.arange(COUNT), first)
    known = evidence(raw=inside, rollout=~inside, position=0.0, gradient=0.0)
    (split, *others) = cross(known, ROLES, None, 0)
    assert split.evidence["mask"].methods[WEIGHTS] == pytest.approx(0)
    assert len(others) == SPLITS - 1


def test_every_text_is_tested_once_in_each_split_and_all_are_paired():
    known = evidence(raw=0.5, rollout=0.5, position=0.1, gradient=0.4)
    known["mask"].methods["raw"][3] = np.nan
    for split in cross(known, ROLES, None, 1):
        for own in split.evidence.values():
            assert set(own.methods) == {WEIGHTS, CONTROL, REFERENCE}
            assert all(len(each) == COUNT for each in own.methods.values())
    assert sum(n for (role, _), n in split.chosen.items() if role == f"{WEIGHTS} ") == 2


def test_texts_of_a_group_are_on_one_side():
    groups = np.repeat(np.arange(COUNT // 2), 2)
    half, other = halves(COUNT, groups, 3)
    assert not set(groups[half]) & set(groups[other])
    assert len(cross(KNOWN, ROLES, groups, 3)) == SPLITS


def test_without_references_or_weights_or_texts():
    crossed = pool(cross(KNOWN, Roles(("raw",), ("position",), ("unknown",)), None, 0))
    assert crossed.name_of(REFERENCE, "mask") is None
    assert REFERENCE not in crossed.evidence["mask"].methods
    with pytest.raises(UsageError, match="needs a reading"):
        cross(KNOWN, Roles(("unknown",), (), ()), None, 0)
    one = {removal: each.select(np.array([0])) for removal, each in KNOWN.items()}
    with pytest.raises(UsageError, match="at least two texts, not 1"):
        cross(one, ROLES, None, 0)

"""Which pairs of a measure and a method are circular."""

import pytest

from attlas.errors import UnknownNameError
from attlas.measures import is_circular


@pytest.mark.parametrize(
    ("measure", "method", "removal", "expected"),
    [
        ("tau_leave_one_out", "leave_one_out", "delete", True),
        ("tau_leave_one_out", "leave_one_out", "mask", True),
        ("comprehensiveness", "leave_one_out", "delete", True),
        ("comprehensiveness", "leave_one_out", "mask", False),
        ("sufficiency", "lime", "mask", True),
        ("sufficiency", "lime", "delete", False),
        ("infidelity", "kernel_shap", "mask", True),
        ("infidelity", "kernel_shap", "pad", False),
        ("comprehensiveness", "raw_attention", "mask", False),
        ("auprc", "lime", "", False),
        ("auprc", "lime", "mask", False),
    ],
)
def test_circular_pairs(measure, method, removal, expected):
    assert is_circular(measure, method, removal) == expected


def test_a_method_that_was_told_how_to_remove():
    assert is_circular("log_odds", "leave_one_out", "mask", computed_with="mask")
    assert not is_circular("log_odds", "leave_one_out", "delete", computed_with="mask")


def test_an_unknown_measure_is_named():
    with pytest.raises(UnknownNameError, match="comprehensivenes"):
        is_circular("comprehensivenes", "lime", "mask")

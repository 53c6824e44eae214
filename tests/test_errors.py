"""Errors say what was given and what is allowed, whatever was given."""

import pytest

from attlas.errors import UnknownNameError, UnsupportedModelError


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cats", "unknown pet 'cats': did you mean 'cat'? allowed: cat, dog"),
        (None, "unknown pet None: allowed: cat, dog"),
        (7, "unknown pet 7: allowed: cat, dog"),
    ],
)
def test_an_unknown_name_is_shown_with_what_is_allowed(name, message):
    assert str(UnknownNameError("pet", name, ["cat", "dog"])) == message


def test_the_failure_of_a_model_is_one_line_that_names_it():
    told = UnsupportedModelError.of_failure(object(), ValueError("no boxes\nat all"))
    assert str(told) == "object fails on this input: ValueError: no boxes"
    silent = UnsupportedModelError.of_failure(object(), AssertionError())
    assert str(silent) == "object fails on this input: AssertionError"


def test_an_interrupt_that_a_failure_covers_is_an_interrupt():
    with pytest.raises(RuntimeError) as covered:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("a stack that is empty")
    with pytest.raises(KeyboardInterrupt):
        UnsupportedModelError.of_failure(object(), covered.value)

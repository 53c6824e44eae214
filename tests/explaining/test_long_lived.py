"""What exists before many texts are explained is left out of the search for garbage, until then."""

import gc

import pytest

import attlas
from attlas.explaining.long_lived import set_aside


@pytest.fixture(autouse=True)
def nothing_set_aside():
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_objects_are_set_aside_within_the_block_alone():
    with set_aside():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_an_error_ends_it_too():
    with pytest.raises(KeyboardInterrupt), set_aside():
        raise KeyboardInterrupt
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_set_aside_stays_so():
    gc.freeze()
    before = gc.get_freeze_count()
    with set_aside():
        assert gc.get_freeze_count() <= before
    assert gc.get_freeze_count() > 0


def test_a_caller_without_collection_is_left_alone():
    gc.disable()
    try:
        with set_aside():
            assert gc.get_freeze_count() == 0
    finally:
        gc.enable()


def test_files_are_written_so(tmp_path):
    """What is made within the block is still looked at, and nothing is set aside afterwards."""
    subject, counts = attlas.load("shortcut_token"), []
    attlas.explain_to(
        subject,
        ["so good", "so bad"],
        tmp_path / "scores.parquet",
        "raw_attention",
        watch=lambda step: counts.append(gc.get_freeze_count()),
    )
    assert max(counts) > 0
    assert gc.get_freeze_count() == 0

"""What holds for all tests."""

import pytest

import attlas.progress


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """No test depends on how busy the machine is: signs of life come after an hour."""
    monkeypatch.setattr(attlas.progress, "FIRST", 3600.0)

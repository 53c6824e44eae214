"""The built-in models: their cards, and that verification can fail."""

import json
from functools import partial

import pytest

from attlas.embedded import verify as verifying
from attlas.embedded.verify import Verified, cards, verify
from attlas.models.facts.places import embedded_names

NAMES = embedded_names()


def test_every_model_has_a_card_that_says_the_main_things():
    found = {card.name: card for card in cards()}
    assert list(found) == NAMES
    for card in found.values():
        for needed in ("## Data", "## Recipe", "## Figures", "## Limits", "Apache-2.0"):
            assert needed in card.text, (card.name, needed)
        assert card.about and len(card.about) < 250
    assert sum(card.megabytes for card in found.values()) < 20


@pytest.mark.parametrize("name", NAMES)
def test_every_model_keeps_its_promises(name):
    found = verify(name, count=60)
    assert found.passed, found


def test_a_promise_can_be_broken():
    assert Verified("x", {"a": 0.9, "b": 0.1}, {"a": 0.9}, {"b": 0.1}).passed
    assert not Verified("x", {"a": 0.8}, {"a": 0.9}, {}).passed
    assert not Verified("x", {"a": 0.9, "b": 0.2}, {"a": 0.9}, {"b": 0.1}).passed
    assert not Verified("x", {"other": 1.0}, {"a": 0.9}, {}).passed


def test_the_command_line_lists_and_verifies(monkeypatch, capsys):
    import sys

    from attlas.cli.main import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["attlas", "models", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, capsys.readouterr()

    status, written = run("--json")
    assert status == 0 and [row["name"] for row in json.loads(written.out)] == NAMES
    status, written = run("--name", "recall")
    assert written.out.startswith("# ")
    monkeypatch.setattr(verifying, "verify", partial(verify, count=60))
    status, written = run("--verify", "--name", "recall", "--json")
    assert status == 0 and json.loads(written.out)[0]["passed"]
    status, written = run("--name", "recal")
    assert status == 2 and "did you mean 'recall'" in written.err
    broken = Verified("recall", {"accuracy": 0.5}, {"accuracy": 0.99}, {})
    monkeypatch.setattr(verifying, "verify", lambda name: broken)
    status, written = run("--verify", "--name", "recall")
    assert status == 1 and "not what the card promises: recall" in written.err

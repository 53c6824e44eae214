"""What is made of the words of pip-audit; the service itself is asked by `make test-all`."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import advisories

SOUND = {"name": "one", "version": "1", "vulns": []}
HURT = {"name": "two", "version": "2", "vulns": [{"id": "A-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "three", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([SOUND], 0, "1 packages looked up, 0 advisories"),
        ([SOUND, HURT], 1, "two 2: A-1, mended in 3"),
        ([SOUND, UNKNOWN], 0, "1 of 2 packages not looked up: three"),
        ([UNKNOWN], 0, "skipped, the service knows none"),
    ],
)
def test_every_answer_is_told(monkeypatch, capsys, packages, status, said):
    told = json.dumps({"dependencies": packages, "fixes": []})
    monkeypatch.setattr(advisories, "ask", lambda: (told, ""))
    assert advisories.main() == status
    assert said in capsys.readouterr().out


def test_without_the_service_it_says_so_and_ends_well(monkeypatch, capsys):
    monkeypatch.setattr(advisories.sys, "executable", sys.executable)
    command = [sys.executable, "-c", "import sys; sys.exit('the network is away')"]
    run = advisories.subprocess.run
    monkeypatch.setattr(advisories.subprocess, "run", lambda asked, **how: run(command, **how))
    assert advisories.main() == 0
    assert "skipped, nothing was looked up: the network is away" in capsys.readouterr().out

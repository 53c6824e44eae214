"""The demo, and what the script that records a user's first minutes counts."""

import re
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def first_minutes():
    spec = spec_from_file_location("first_minutes", HOUSE / "scripts" / "first_minutes.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_explains_a_turn_by_the_default_method_and_says_what_is_next():
    (demo,) = re.findall(r"^demo:.*?(?=\n\n)", (HOUSE / "Makefile").read_text(), re.M | re.S)
    assert '"The acting is superb, but the plot is boring and far too long."' in demo
    assert "--method" not in demo and "--data reviews" in demo
    assert demo.splitlines()[-1].strip().startswith("@echo 'Next: ")
    assert all(line.lstrip().startswith(("@", '"')) for line in demo.splitlines()[1:])


def test_the_record_counts_seconds_and_the_lines_that_stay(first_minutes):
    pieces = [(1.0, "Installing "), (5.0, ".\n"), (5.0, "")]
    pieces += [(6.0, "\r\x1b[Kloading  1 s"), (7.5, "\r\x1b[Kloading  2 s"), (8.0, "\r\x1b[K")]
    pieces += [(8.2, "\x1b[1mNEGATIVE 0.9\x1b[0m\r\n"), (11.4, "wrote page\r\n"), (11.5, "")]
    assert first_minutes.record(pieces, 5.0) == {
        "seconds to install": "5",
        "seconds to the first result after that": "3",
        "seconds in all after installing": "6",
        "longest silence after installing, seconds": "3.2",
        "what was written before it": "NEGATIVE 0.9",
        "lines printed": "3",
    }


def test_a_verb_is_heard_from_its_start_to_its_end(first_minutes, monkeypatch, capsys):
    """Silent for a second, and for two more when Python ends, which is not the verb's silence."""
    silent = "__import__('time').sleep(1)"
    ending = "__import__('atexit').register(__import__('time').sleep, 2)"
    monkeypatch.setattr(first_minutes, "VERBS", {"sleep": f"({ending}, {silent})"})
    first_minutes.measure_verbs()
    _, *rows = capsys.readouterr().out.splitlines()
    found = [re.match(r"sleep +(terminal|pipe) +\d+ +(\d\.\d) s", row) for row in rows]
    assert [each[1] for each in found] == ["terminal", "pipe"]
    assert all(1.0 <= float(each[2]) < 2.9 for each in found)


def test_what_a_quiet_command_says_is_shown_if_it_fails():
    def run(*command):
        asked = [HOUSE / "scripts" / "quietly", "Trying", *command]
        return subprocess.run(asked, capture_output=True, text=True)

    fine, wrong = run("echo", "much"), run("sh", "-c", "echo reason; exit 3")
    assert (fine.returncode, fine.stdout) == (0, "Trying \n")
    assert (wrong.returncode, wrong.stdout) == (3, "Trying \nreason\n")

"""What all commands have in common: an example, and the same options for the same things."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from attlas.cli import options
from attlas.cli.main import COMMANDS
from attlas.errors import UsageError

LOADING = (
    *(
        "--task",
        "--device",
        "--dtype",
        "--attn-implementation",
        "--unsafe-weights",
        "--trust-remote-code",
    ),
    *("--device-map", "--max-memory", "--offload-folder", "--quantization"),
)
DATA = ("--data", "--text", "--pair", "--label", "--spans", "--split", "--count")
OUTPUT = ("--html", "--save", "--json")
LOAD_A_MODEL = ["audit", "check", "explain", "heads", "tree", "triggers"]
READ_DATA = ["audit", "heads", "triggers"]
GIVE_A_RESULT = ["explain", "heads", "tree", "triggers"]


def listed(run, command):
    """The options in the help of a command."""
    status, out, _ = run(command, "--help")
    assert status == 0
    return set(re.findall(r"^  (?:-m, )?(--[a-z-]+)", out, re.MULTILINE))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    _, out, _ = run(command, "--help")
    assert f"Example: attlas {command} " in " ".join(out.split())
    assert "--json" in out


def test_every_file_is_a_command_or_shared_by_commands():
    files = {path.stem for path in Path(options.__file__).parent.glob("*.py")}
    assert files == {*COMMANDS, "__init__", "main", "options", "output"}


@pytest.mark.parametrize("command", LOAD_A_MODEL)
def test_the_options_of_the_model_are_the_same_everywhere(run, command):
    assert set(LOADING) <= listed(run, command)
    assert command == "check" or "--model" in listed(run, command)


@pytest.mark.parametrize("command", READ_DATA)
def test_the_options_of_the_data_are_the_same_everywhere(run, command):
    assert set(DATA) <= listed(run, command)


@pytest.mark.parametrize("command", GIVE_A_RESULT)
def test_the_options_of_the_output_are_the_same_everywhere(run, command):
    assert set(OUTPUT) <= listed(run, command)


@pytest.mark.parametrize("command", LOAD_A_MODEL)
def test_every_command_loads_its_model_with_these_options(run, monkeypatch, command):
    asked = []

    def load(model, **given):
        asked.append((model, given))
        raise UsageError("stop here")

    monkeypatch.setattr("attlas.models.load.load", load)
    monkeypatch.setattr("attlas.models.facts.places._is_on_hub", lambda name: True)
    flags = ("--task", "masked lm", "--device", "cpu", "--dtype", "float64")
    switches = ("--unsafe-weights", "--trust-remote-code")
    model = ["org/name"] if command == "check" else ["--model", "org/name"]
    text = ["a text"] if command in ("explain", "tree") else []
    status, _, err = run(command, *text, *model, *flags, *switches)
    assert (status, err) == (2, "attlas: stop here\n")
    given = {"task": "masked lm", "device": "cpu", "dtype": "float64"}
    placed = dict.fromkeys(
        ("attn_implementation", "device_map", "max_memory", "offload_folder", "quantization_config")
    )
    allowed = {"unsafe_weights": True, "trust_remote_code": True}
    assert asked == [("org/name", {**given, **placed, **allowed})]


def test_a_group_becomes_one_option_for_each_field():
    seen = []

    def command(*, loading: options.LoadOptions, seed: int = 0) -> None:
        seen.append((loading, seed))

    others = dict.fromkeys(each.name for each in fields(options.LoadOptions))
    given = {"device": "cpu", "unsafe_weights": False, "trust_remote_code": True, "seed": 3}
    options.spread(command)(**{**others, **given})
    assert seen == [(options.LoadOptions(device="cpu", trust_remote_code=True), 3)]

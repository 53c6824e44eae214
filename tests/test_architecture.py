"""docs/architecture.md is checked against the code: the floors, the storeys, and the two roads."""

import re
import sys
from pathlib import Path

import pytest
from test_house import FLOORS, HOUSE, MODEL_FLOORS

import attlas

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"


def section(title):
    """The text below a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    assert found, f"no section {title!r}"
    return found.group(1)


def listed_files(title):
    """The files that stand first in the lines of a section's drawing, in order."""
    return re.findall(r"^([a-z_/]+\.py)\b", section(title), re.M)


def test_the_drawing_of_the_house_shows_every_floor():
    drawn = {}
    for line in section("The house").splitlines():
        if found := re.match(r"floor\s+(\d+)\s+(.+?)(?:\s{3,}|$)", line):
            drawn[int(found.group(1))] = {
                each.strip().removesuffix("/").removesuffix(".py")
                for each in found.group(2).split("·")
            }
    assert [drawn.get(number) for number in range(len(FLOORS))] == FLOORS


def test_every_storey_of_the_model_room_is_drawn_in_its_place():
    drawn = []
    for line in section("The storeys of `models/`").split("```")[1].splitlines():
        if found := re.match(r"((?:[a-z_]+(?:/|\.py)[, ]*)+)  ", line):
            drawn.append(set(re.findall(r"[a-z_]+(?=/|\.py)", found.group(1))))
    top = MODEL_FLOORS[-2] | MODEL_FLOORS[-1]
    assert drawn[::-1] == [*MODEL_FLOORS[:-2], top]


@pytest.mark.parametrize("title", ["A call to `explain`", "An audit"])
def test_the_files_of_a_road_exist(title):
    files = listed_files(title)
    assert len(files) > 5
    assert [file for file in files if not (HOUSE / file).is_file()] == []


def is_importing(frame):
    """Whether a frame runs because a module is imported: that is no call on the road."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(HOUSE)):
            return True
        frame = frame.f_back
    return False


def entered_files(work):
    """The files of Attlas whose functions are entered during some work, in order of first entry."""
    entered = {}

    def note(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(HOUSE)) and not is_importing(frame):
            entered.setdefault(str(Path(name).relative_to(HOUSE)))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(entered)


def hold_in_order(title, work):
    """The files of a road are entered, in the order in which the page lists them."""
    listed, entered = listed_files(title), entered_files(work)
    assert [file for file in listed if file not in entered] == []
    assert listed == [file for file in entered if file in listed]


def test_a_call_to_explain_takes_the_road_on_the_page():
    subject = attlas.load()
    text = "a warm and funny film"
    attlas.explain(subject, text, "attention_rollout")  # what is found once is found here
    hold_in_order("A call to `explain`", lambda: attlas.explain(subject, text, "attention_rollout"))


def test_an_audit_takes_the_road_on_the_page(tmp_path):
    subject = attlas.load()
    data = [(f"a warm and funny film {word}", "POSITIVE") for word in ("one", "two", "three")]
    hold_in_order(
        "An audit",
        lambda: attlas.audit(
            subject,
            data,
            ["raw_attention", "gradient"],
            ["comprehensiveness"],
            [],
            removal=["delete"],
            out=tmp_path / "audit",
        ),
    )

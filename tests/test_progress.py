"""Progress: nothing is silent for two seconds, and nothing is left behind on the screen."""

import io
import re
import sys
from time import monotonic, sleep
from types import SimpleNamespace

import pytest

import attlas
from attlas import progress
from attlas.progress import Step, hush, say, unseen, watched

SIGN = 0.02  # seconds between two signs in these tests
MANY = 0.4  # seconds in which there are several


class Stream(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def stream(request, monkeypatch):
    shown = Stream(request.param)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))  # pytest takes sys.stderr
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(progress, "FIRST", SIGN)
    monkeypatch.setattr(progress, "TICK", SIGN / 2)
    for kind in (progress._RewrittenLine, progress._GrowingLine):
        monkeypatch.setattr(kind, "every", SIGN)
    return shown


def test_no_two_signs_are_two_seconds_apart():
    assert progress.FIRST == 3600.0  # only in tests
    kinds = (progress._RewrittenLine, progress._GrowingLine)
    assert all(kind.every + progress.TICK < 2 for kind in kinds)


def test_one_thread_looks_after_all_lines_and_rests_when_there_are_none(stream, monkeypatch):
    monkeypatch.setattr(progress, "REST", SIGN)
    threads = set()
    for _ in range(3):
        with watched(None, "working"):
            threads.add(progress._HEART._thread)
    assert len(threads) == 1 and None not in threads
    sleep(MANY)
    assert progress._HEART._thread is None


def test_work_shows_itself_though_it_tells_no_step(stream):
    with watched(None, "loading"):
        sleep(MANY)
        before = stream.getvalue()
    assert "loading" in before and before.count("." if not stream.is_terminal else "\r") > 2


def test_what_is_imported_at_its_first_use_shows_itself(stream, monkeypatch):
    home = f"attlas.{attlas._HOMES['load']}"
    slow = SimpleNamespace(load="loaded")
    monkeypatch.delitem(sys.modules, home, raising=False)
    monkeypatch.setattr(attlas, "import_module", lambda name: (sleep(MANY), slow)[1])
    assert attlas.load == "loaded"
    assert "importing torch" in stream.getvalue()


def test_short_work_shows_nothing(stream, monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 3600.0)
    with watched(None, "loading") as watch:
        watch(Step("one", 1, 2))
    assert stream.getvalue() == ""


def test_whoever_watches_is_told_and_nothing_is_shown(stream):
    seen = []
    with watched(seen.append, "loading") as watch:
        watch(Step("one", 1, 2))
        sleep(MANY)
    assert seen == [Step("one", 1, 2)] and stream.getvalue() == ""


def test_steps_are_shown(stream):
    with watched(None, "auditing") as watch:
        sleep(MANY)
        watch(Step("batch\x1b[2J 3", 1, 4, 100.0))
        sleep(MANY)
    shown = stream.getvalue()
    assert "25 %" in shown if stream.is_terminal else " 25% ." in shown
    assert ("about 2 min left" in shown) == stream.is_terminal and "\x1b[2J" not in shown


def test_a_terminal_is_left_clean_and_a_file_ends_in_a_new_line(stream):
    with watched(None, "a" * 100):
        sleep(MANY)
    shown = stream.getvalue()
    if stream.is_terminal:
        lines = shown.split("\r\x1b[K")
        assert lines[-1] == "" and "\n" not in shown and max(map(len, lines)) == 59
    else:
        assert shown.endswith("\n") and shown.count("attlas:") == 1


def test_a_growing_line_is_broken_before_the_edge(stream):
    with watched(None, "auditing") as watch:
        for done in range(60):
            watch(Step("batch", done, 60))
            sleep(1.2 * SIGN)
    if not stream.is_terminal:
        assert max(map(len, stream.getvalue().split("\n"))) <= progress.WIDTH


def test_work_within_work_goes_on_in_the_same_line(stream):
    with watched(None, "outer") as outer:
        sleep(MANY)
        with watched(None, "inner"):
            sleep(MANY)
        outer(Step("after", 1, 2))
        sleep(MANY)
    names = re.findall("outer|inner|after", stream.getvalue())
    wanted = ["outer", "inner", "after"] if stream.is_terminal else ["outer", "inner", "outer"]
    assert [name for at, name in enumerate(names) if names[at - 1 : at] != [name]] == wanted


def test_nothing_is_shown_where_others_write(stream):
    with watched(None, "outer"):
        hush()
        with unseen():
            with watched(None, "inner") as watch:
                watch(Step("on the way", 1, 2))
                sleep(MANY)
            sleep(MANY)
        assert not re.search("inner|way", stream.getvalue())
    with watched(None, "later"):
        sleep(MANY)
    assert "later" in stream.getvalue()


def test_others_can_write_in_between(stream):
    with watched(None, "working") as watch:
        sleep(MANY)
        hush()
        stream.write("<here>")
        sleep(MANY)
        assert stream.getvalue().endswith("<here>")
        before = stream.getvalue().removesuffix("<here>")
        assert before.endswith("\r\x1b[K" if stream.is_terminal else "\n")
        watch(Step("more", 0, 1))
        sleep(MANY)
    assert not stream.getvalue().endswith("<here>")


def test_a_stream_that_nobody_reads_stops_nothing(stream):
    with watched(None, "working"):
        stream.close()
        sleep(MANY)
        say("a line")


def test_a_line_of_its_own_is_below_what_is_shown(stream):
    with watched(None, "working"):
        sleep(MANY)
        say("going\x1b[2J on")
        before, _, after = stream.getvalue().partition("going·[2J on\n")
    assert before.endswith("\r\x1b[K" if stream.is_terminal else "\n") and not after


@pytest.fixture
def clock(monkeypatch):
    """How many seconds the clock was set forward, or back."""
    moved = SimpleNamespace(by=0.0)
    monkeypatch.setattr(progress, "monotonic", lambda: monotonic() + moved.by)
    return moved


@pytest.mark.parametrize("seconds", [-1e6, 1e6])
def test_signs_go_on_where_the_clock_was_changed(stream, clock, seconds):
    with watched(None, "working"):
        sleep(MANY)
        clock.by, before = seconds, len(stream.getvalue())
        sleep(MANY)
        shown = stream.getvalue()[before:]
    assert shown.count("." if not stream.is_terminal else "\r") > 2 and "-" not in shown


def test_signs_are_as_many_where_the_clock_runs_backwards(stream, monkeypatch):
    monkeypatch.setattr(progress, "monotonic", lambda: -monotonic())
    monkeypatch.setattr(progress, "sleep", lambda _: sleep(SIGN / 20))  # it ends at once
    with watched(None, "working"):
        sleep(MANY)
    assert 2 < stream.getvalue().count("." if not stream.is_terminal else "\r") < 2 * MANY / SIGN


def test_signs_go_on_where_the_clock_lets_nobody_sleep(stream, monkeypatch):
    def invalid(_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(progress, "sleep", invalid)
    monkeypatch.setattr(progress, "_HEART", progress._Heart())
    with watched(None, "working"):
        sleep(MANY)
        assert progress._HEART._thread.is_alive()
    assert stream.getvalue().count("." if not stream.is_terminal else "\r") > 2

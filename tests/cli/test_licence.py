"""`attlas explain --licence`: the word in a terminal and in JSON, and what it does not go with."""

import json

TEXT = "a warm and funny film"


def test_the_licence_is_shown_and_in_the_json(run):
    status, out, _ = run("explain", "--licence", "--no-maps", TEXT)
    assert (status == 0 and "as where. " in out.replace("\n", " ")) or "for this text. " in out
    assert "enough alone" in out
    status, out, _ = run("explain", "--licence", "--no-maps", "--json", TEXT)
    found = json.loads(out)["licence"]
    assert status == 0 and [each["removal"] for each in found["removals"]] == ["delete", "mask"]


def test_what_it_does_not_go_with_is_one_line(run):
    for flags in (["--without-sinks"], ["--generate", "3"]):
        status, _, told = run("explain", "--licence", *flags, TEXT)
        assert status != 0 and "--licence" in told

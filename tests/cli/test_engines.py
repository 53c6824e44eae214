"""Who does the work, as it is asked for on the command line: mistakes before anything is loaded."""

import pytest

from attlas.cli.options import LoadOptions

DATA = ("--data", "reviews", "--count", "4")


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch):
    monkeypatch.setattr(LoadOptions, "load", lambda *given: pytest.fail("a model was loaded"))


@pytest.mark.parametrize("command", ["explain", "audit", "heads", "study"])
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--engine", "rai"), "unknown engine 'rai': did you mean 'ray'? allowed: local, ray"),
        (("--address", "head:1"), "the address head:1 is for the engine ray"),
        (("--engine", "ray", "--address", "127.0.0.1:1"), "no Ray cluster answers at 127.0.0.1:1"),
    ],
)
def test_a_wrong_engine_is_one_line(run, tmp_path, command, asked, said):
    given = ("poster", "--quick") if command == "study" else DATA
    given += ("--out", tmp_path / "a.parquet") if command == "explain" else ()
    status, out, err = run(command, *given, *asked)
    assert status == 2 and out == ""
    assert err.startswith("attlas: ") and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("explain", "so good", "--engine", "ray"), "need --data"),
        (("heads", *DATA, "--workers", "0"), "workers are at least 1, not 0"),
        (("heads", *DATA, "--prune-curve", "--engine", "ray"), "are for the importance of heads"),
        (("heads", *DATA, "--redundancy", "--out", "a.parquet"), "are for the importance of heads"),
    ],
)
def test_what_does_not_go_with_workers_is_told(run, asked, said):
    status, _, err = run(*asked)
    assert status == 2 and said in err

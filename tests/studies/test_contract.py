"""What every study owes, and studies by name."""

import json
from inspect import signature
from time import process_time

import pytest
import torch
from part_folders import check_files

import attlas
from attlas.catalogue import catalogue
from attlas.errors import UnknownNameError, UsageError
from attlas.results.study_result import QUICK, VERDICTS
from attlas.studies import STUDIES
from attlas.studies.support.findings import Findings, untested
from attlas.studies.support.run import Run, rounded_on
from attlas.studies.support.study import Study

MOST_SECONDS = 16  # of one core: 8 seconds of two
every = pytest.mark.parametrize("name", STUDIES.built_in)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Each study in its quick form, run once: its result, its folder, and its seconds."""
    found = {}

    def run(name):
        if name not in found:
            folder = tmp_path_factory.mktemp(name)
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("ATTLAS_DATA", raising=False)  # a quick form needs no data set
                begun = process_time()
                result = attlas.study(name, quick=True, out=folder)
                found[name] = (result, folder, process_time() - begun)
        return found[name]

    return run


def test_every_study_has_its_file_its_test_and_its_page():
    check_files(STUDIES)


@every
def test_its_record_is_whole_and_plain(name):
    chosen = STUDIES[name]
    assert chosen.about and chosen.paper and chosen.question.endswith("?")
    assert chosen.quick and chosen.takes[0] > 0
    facts = catalogue("study")[name]  # what is listed before anything is imported
    assert dict(facts.options) == dict(chosen.options)
    assert dict(facts.record["quick"]) == dict(chosen.quick)
    assert set(facts.described) == set(chosen.options), "describe each option under Args:"


@every
def test_the_quick_form_is_quick_and_says_so(ran, name):
    result, folder, seconds = ran(name)
    assert seconds < MOST_SECONDS
    assert result.quick and QUICK in result.markdown() and QUICK in result._repr_html_()
    assert QUICK in (folder / f"{name}.html").read_text("utf-8")
    assert json.loads((folder / f"{name}.json").read_text("utf-8"))["quick"] is True
    assert "(quick)" in (folder / f"{name}.html").read_text("utf-8")


@every
def test_every_claim_has_a_source_and_a_rule(ran, name):
    result = ran(name)[0]
    assert result.claims and result.differs and result.plots
    for claim in result.claims:
        assert claim.said and claim.source and claim.rule and claim.verdict in VERDICTS
        assert claim.ours is not None or (claim.verdict == "not tested here" and claim.found)
    assert len({claim.said for claim in result.claims}) == len(result.claims)


@every
def test_a_count_is_a_whole_number_above_zero(name):
    options = signature(STUDIES[name].function).parameters.values()
    counts = [each.name for each in options if each.annotation in (int, int | None)]
    assert counts
    for each in counts:
        for wrong in (-1, 1.5, "few", True):
            with pytest.raises(UsageError, match=rf"^{each}: a whole number"):
                attlas.study(name, quick=True, **{each: wrong})
    if "seeds" in counts:
        with pytest.raises(UsageError, match=r"^seeds: a whole number, 1 or more, not 0"):
            attlas.study(name, quick=True, seeds=0)


@every
def test_its_json_is_its_result(ran, name):
    result, folder, _ = ran(name)
    record = json.loads((folder / f"{name}.json").read_text("utf-8"))
    again = type(result).from_dict(record)
    assert again.to_dict() == record and again.payload() == result.payload()
    saved = result.save(folder / "saved.attlas")
    assert type(result).load(saved).payload() == result.payload()


@every
def test_what_is_finished_is_not_run_again(ran, name, monkeypatch):
    result, folder, _ = ran(name)
    parts = {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}
    assert parts, "a study keeps what it has finished: run.kept"
    again = attlas.study(name, quick=True, out=folder)
    assert again.to_dict()["claims"] == result.to_dict()["claims"]
    assert {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()} == parts


@every
def test_its_plots_are_drawn_for_a_paper(ran, name):
    result = ran(name)[0]
    for number in range(len(result.plots)):
        assert result.plot(plot=number) is not None


def stand_in(monkeypatch, function, **record):
    made = {"about": "a", "question": "q?", "paper": "p", **record}
    monkeypatch.setitem(STUDIES._parts, "attattr", Study("attattr", function, **made))


def findings(**details):
    return Findings((untested("It is so.", "a paper", "elsewhere"),), ("all",), details=details)


def test_a_study_is_found_by_its_name_and_handed_its_options(monkeypatch):
    stand_in(monkeypatch, lambda run, *, steps=3: findings(steps=steps), quick={"steps": 1})
    assert attlas.study("attattr").details == {"steps": 3}
    assert attlas.study("attattr", steps=5).details == {"steps": 5}
    assert attlas.study("attattr", quick=True).settings == {"steps": 1}
    assert attlas.study("attattr", quick=True, steps=7).settings == {"steps": 7}


def test_parts_that_are_kept_are_not_computed_again(monkeypatch, tmp_path):
    computed = []

    def function(run, *, seeds=2, steps=3):
        def part(seed):
            computed.append(seed)
            return {"value": seed * steps, "unknown": float("nan")}

        return findings(
            all=[run.kept(f"seed {each}", lambda e=each: part(e)) for each in range(seeds)]
        )

    stand_in(monkeypatch, function)
    first = attlas.study("attattr", out=tmp_path)
    assert first.details["all"][1] == {"value": 3, "unknown": None} and computed == [0, 1]
    attlas.study("attattr", out=tmp_path, seeds=3)
    assert computed == [0, 1, 2], "one more seed runs one more part"
    attlas.study("attattr", out=tmp_path, steps=4)
    assert computed == [0, 1, 2, 0, 1], "another setting runs all"
    attlas.study("attattr")
    assert computed[5:] == [0, 1], "nothing is kept without a folder"
    for part in (tmp_path / "parts").iterdir():
        part.write_text("{")
    with pytest.raises(UsageError, match="is not a part of this study"):
        attlas.study("attattr", out=tmp_path)


def test_a_page_of_others_is_left_alone(monkeypatch, tmp_path):
    stand_in(monkeypatch, lambda run: findings(all=run.kept("one", lambda: 3)))
    (tmp_path / "attattr.html").write_text("mine")
    with pytest.raises(UsageError, match="no study wrote it"):
        attlas.study("attattr", out=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["attattr.html"]


def test_a_part_says_where_with_what_and_how_long_it_was_computed(monkeypatch, tmp_path):
    stand_in(monkeypatch, lambda run: findings(all=run.kept("one", lambda: 3)))
    attlas.study("attattr", out=tmp_path)
    (place,) = (tmp_path / "parts").iterdir()
    part = json.loads(place.read_text("utf-8"))
    del part["digest"]  # as those of before, which had none
    part |= {"machine": "another", "seconds": 70.5, "versions": {"torch": "1.0"}}
    place.write_text(json.dumps(part), encoding="utf-8")
    again = attlas.study("attattr", out=tmp_path)
    assert (again.machine, again.seconds, again.versions) == ("another", 70.5, {"torch": "1.0"})
    del part["seconds"]
    place.write_text(json.dumps(part), encoding="utf-8")
    assert attlas.study("attattr", out=tmp_path).machine != "another", "half a part is run again"


def test_mistakes_are_named(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown study 'atattr'.*did you mean 'attattr'"):
        attlas.study("atattr")
    with pytest.raises(UnknownNameError, match=r"unknown option of attattr 'model'.*'models'"):
        attlas.study("attattr", model="here", out="there")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        attlas.study("attattr", quick=True, out=tmp_path / "file" / "below")


def test_a_record_that_cannot_be_is_refused():
    def needs(run, *, data):
        return findings()

    with pytest.raises(UnknownNameError, match="unknown option of x 'dta'"):
        Study("x", needs, "a", "q?", "p", quick={"dta": 1})
    with pytest.raises(UsageError, match="the study x needs data"):
        Study("x", needs, "a", "q?", "p").settings({}, quick=False)
    with pytest.raises(UsageError, match="cannot have an option 'out'"):
        Study("x", lambda run, *, out=1: None, "a", "q?", "p")


def test_what_a_device_rounds_is_told(monkeypatch):
    assert rounded_on(torch.device("cpu")) == []
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert rounded_on(torch.device("cuda"))[0] == "products"


def test_a_part_is_kept_once_it_is_computed(tmp_path):
    run = Run("mine", {"steps": 3, "seeds": 2}, tmp_path, "cpu", lambda _: None)
    assert not run.is_kept("first")
    run.kept("first", lambda: 5)
    assert run.is_kept("first")
    more = Run("mine", {"steps": 4, "seeds": 2}, tmp_path, "cpu", lambda _: None)
    seeds = Run("mine", {"steps": 3, "seeds": 9}, tmp_path, "cpu", lambda _: None)
    assert seeds.is_kept("first") and not more.is_kept("first")
    assert not Run("mine", {}, None, "cpu", lambda _: None).is_kept("first")

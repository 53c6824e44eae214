"""Forged results, whose digest is right: they are refused when loaded, or can be shown."""

import io
import json

import numpy as np
import pytest
from results.every_result import EVERY, SAVED
from rich.console import Console
from safetensors import safe_open

from attlas.errors import ResultFileError
from attlas.results import Explanation
from attlas.results.support.files import write_record
from attlas.views import map_codes

WRONG = ["x", "", None, -1, 10**6, 2.5, True, [], {}, [[1]], {"a": 1}, "\ud800", "y" * 5000]
FORGED = 24  # of each kind of result


def leaves(value, path=()):
    """Where each value of a record stands."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value[:4]):
            yield from leaves(each, (*path, place))


def changed(record, path, value):
    copy = json.loads(json.dumps(record))
    if not path:
        return value
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    if value == "left out":
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", EVERY)
def test_a_forged_result_is_refused_or_shown(name, tmp_path):
    kind = type(EVERY[name]())
    with safe_open(SAVED / f"{name}.attlas", framework="numpy") as file:
        arrays = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118
        record = json.loads(file.metadata()["attlas"])
    header = {key: each for key, each in record.items() if key not in ("kind", "format")}
    places = [path for path in leaves(header) if path]
    random = np.random.default_rng(0)
    for _ in range(FORGED):
        path = places[random.integers(len(places))]
        value = [*WRONG, "left out"][random.integers(len(WRONG) + 1)]
        write_record(tmp_path / "forged", kind.record_kind, changed(header, path, value), arrays)
        try:
            loaded = kind.load(tmp_path / "forged")
        except ResultFileError as problem:
            assert "\n" not in str(problem)
            continue
        loaded.to_html(tmp_path / "page.html")
        loaded._repr_html_()
        Console(file=io.StringIO(), width=100).print(loaded)
        assert repr(loaded)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_maps_that_are_no_numbers_are_refused_wherever_they_are(value, tmp_path):
    for name in ("Maps", "Explanation"):
        made = EVERY[name]()
        header, arrays = made._to_record()
        wrong = np.array(arrays["maps.0"])
        wrong[-1, -1, -1] = value
        write_record(tmp_path / "wrong", made.record_kind, header, {**arrays, "maps.0": wrong})
        with pytest.raises(ResultFileError):
            type(made).load(tmp_path / "wrong")


def test_large_maps_are_not_packed_to_be_loaded(tmp_path, monkeypatch):
    made = EVERY["Explanation"]()
    made.save(tmp_path / "one")
    packed = []
    pack = map_codes._packed

    def noted(codes):
        packed.append(codes.size)
        return pack(codes)

    monkeypatch.setattr(map_codes, "_packed", noted)
    loaded = Explanation.load(tmp_path / "one")
    assert max(packed) < max(array.size for array in made.maps.weights)
    assert all(map(np.array_equal, loaded.maps.weights, made.maps.weights))

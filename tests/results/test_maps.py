"""Maps: by name, as a table, as bytes, saved."""

import json
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from results.records import any_array, any_maps, any_tokens, film, maps, same_maps

from attlas.errors import ResultFileError, UnknownNameError, UsageError
from attlas.results import Maps, Site
from attlas.views.map_codes import read_site

BROAD = settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))


def one_site(array):
    """Maps of one site over as many tokens as it needs, all of them the same."""
    tokens = film().tokens
    queries, keys = ((0,) * size for size in array.shape[1:])
    return Maps((Site("encoder", 0, len(array)),), (array,), tokens, (queries,), (keys,))


def test_names():
    assert Site("encoder", 3, 4).name == "encoder.3"
    assert Site("all", 0, 1).name == "all"


def test_sites_by_name():
    found = maps()
    assert len(found) == 2
    assert [site.name for site, _ in found] == ["encoder.0", "cross.1"]
    assert found["cross.1"].tolist() == [[[0.25, 0.75]]]
    assert found.query_tokens("cross.1") == ("x",)
    assert found.key_tokens("cross.1") == ("a", "b")
    with pytest.raises(UnknownNameError, match=r"unknown site 'cross\.0': did you mean 'cross\.1'"):
        found["cross.0"]


def test_axes_are_tied_to_tokens():
    array = np.zeros((1, 2, 3))
    sites, tokens = (Site("encoder", 0, 1),), film().tokens
    with pytest.raises(UsageError, match=r"encoder.0 has shape \(1, 2, 3\), not 2 queries by 2"):
        Maps(sites, (array,), tokens, ((0, 1),), ((0, 1),))
    with pytest.raises(UsageError, match="names tokens beyond the"):
        Maps(sites, (array,), tokens, ((0, 1),), ((0, 1, 7),))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Maps(sites, (array, array), tokens, ((0, 1),), ((0, 1, 2),))


def test_to_pandas():
    table = maps().to_pandas()
    columns = ["site", "head", "query", "query_token", "key", "key_token", "weight"]
    assert list(table.columns) == columns
    assert len(table) == 2 * 9 + 2
    row = table.iloc[9 + 5]  # the second head, the second query, the third key
    assert row[columns[:-1]].tolist() == ["encoder.0", 1, 1, "b", 2, "x"]
    assert row["weight"] == np.float32(14 / 18)
    assert table.iloc[-1].tolist() == ["cross.1", 0, 0, "x", 1, "b", 0.75]


def test_no_sites():
    empty = Maps((), (), film().tokens, (), ())
    assert list(empty.to_pandas().columns) == list(maps().to_pandas().columns)
    assert len(empty.to_pandas()) == 0
    assert empty.payload_section() == {"signed": False, "shows": "attention", "sites": []}


def drawn(site):
    """The weights that a page can read from a site of a payload."""
    return read_site(site)


def codes(site):
    return np.frombuffer(zlib.decompress(b64decode(site["data"])), site["codes"]).tolist()


@BROAD
@given(st.tuples(*(st.integers(1, 3),) * 3).flatmap(any_array))
def test_a_byte_a_weight_is_near_enough(array):
    site = json.loads(json.dumps(one_site(array).payload_section(), allow_nan=False))["sites"][0]
    exact = array.astype(np.float64)
    largest = np.abs(exact).max(axis=(1, 2))
    assert site["limits"] == largest.tolist()
    # Half a step of the root; a byte with a sign has half as many steps.
    top = {"uint8": 255, "int8": 127}[site["codes"]]
    limit = largest[:, None, None]
    error = np.sqrt(np.abs(exact)) * np.sqrt(limit) / top + limit / (4 * top**2)
    assert np.all(np.abs(drawn(site) - exact) <= error * (1 + 1e-5))
    assert np.all(drawn(site)[exact == 0] == 0)
    fine = one_site(array).payload_section("float16")["sites"][0]
    assert np.all(np.abs(drawn(fine) - exact) <= np.abs(exact) / 2047 + limit * 3e-8)


def test_weights_far_below_the_strongest_are_told_apart():
    heads = np.array([[[1.0, 1e-3, 2e-3, 1e-4]]], dtype=np.float32)
    site = one_site(heads).payload_section()["sites"][0]
    assert site["codes"] == "uint8"
    assert drawn(site)[0, 0] == pytest.approx(heads[0, 0], rel=0.08, abs=4e-5)
    site = one_site(heads).payload_section("float16")["sites"][0]
    assert drawn(site)[0, 0] == pytest.approx(heads[0, 0], rel=5e-4)
    with pytest.raises(UsageError, match=r"unknown precision 'float8': .*8-bit, float16"):
        one_site(heads).payload_section("float8")


def test_patterns_of_numbers_whose_sum_single_precision_does_not_hold():
    largest = np.full((1, 2, 2), 1.7e38, dtype=np.float32)
    found = one_site(largest).payload_section()["sites"][0]["patterns"]
    assert found["first"] == pytest.approx([1.7e38]) and found["same"] == pytest.approx([1.7e38])


def test_patterns_of_a_head_that_looks_back_and_of_one_that_looks_all_about():
    back, about = np.eye(4, k=-1), np.full((4, 4), 0.25)
    back[0, 0] = 1
    found = one_site(np.stack([back, about])).payload_section()["sites"][0]["patterns"]
    assert found == {
        "first": [0.5, 0.25],
        "broad": [0.0, 1.0],
        "previous": [1.0, 0.25],
        "same": [0.25, 0.25],
        "next": [0.0, 0.25],
    }
    causal = np.tril(np.ones((4, 4)))
    causal /= causal.sum(axis=1, keepdims=True)
    for precision in ("8-bit", "float16"):
        site = one_site(causal[None]).payload_section(precision)["sites"][0]
        assert site["patterns"]["broad"] == pytest.approx([1.0], abs=0.01)
    assert one_site(-about[None]).payload_section()["sites"][0]["patterns"] == {}


def test_a_head_of_zeros_beside_strong_ones_stays_zero():
    heads = np.array([[[-0.3, 0.0, 0.9]], [[0.0, 0.0, 0.0]], [[2e-5, 0.0, -1e-5]]])
    site = one_site(heads).payload_section()["sites"][0]
    assert site["limits"] == [0.9, 0.0, 2e-5]
    assert drawn(site)[1].tolist() == [[0, 0, 0]]
    assert drawn(site)[2] == pytest.approx(heads[2], rel=0.02)


def test_a_range_that_half_precision_cannot_hold():
    site = one_site(np.array([[[-60000, 0, 60000]]], dtype=np.float16)).payload_section()["sites"][
        0
    ]
    assert codes(site) == [-127, 0, 127]
    assert site["limits"] == [60000.0]


def test_payload():
    payload = maps(signed=True).payload_section()
    assert payload["signed"] is True
    site = payload["sites"][1]
    assert (site["name"], site["kind"], site["layer"]) == ("cross.1", "cross", 1)
    assert (site["queries"], site["keys"], site["shape"]) == ([2], [0, 1], [1, 1, 2])
    assert codes(site) == [147, 255]  # √(0.25 / 0.75) of 255


def test_what_the_maps_show_is_kept(tmp_path):
    shown = replace(maps(), shows="attention × gradient")
    kept = Maps.load(shown.save(tmp_path / "maps"))
    assert kept.shows == Maps.from_dict(shown.to_dict()).shows == "attention × gradient"
    assert Maps.load(maps().save(tmp_path / "maps")).shows == "attention"


def test_weights_that_are_all_the_same():
    site = one_site(np.full((1, 2, 2), 0.3)).payload_section()["sites"][0]
    assert drawn(site).tolist() == [[[0.3, 0.3], [0.3, 0.3]]]


def test_what_is_not_finite_is_not_drawn():
    with pytest.raises(UsageError, match=r"encoder\.0 has values that are not finite"):
        one_site(np.array([[[np.nan, 1.0]]])).payload_section()


@BROAD
@given(make_tokens=any_tokens(4), make_maps=any_maps(4))
def test_anything_is_saved_and_loaded(make_tokens, make_maps):
    given_maps = make_maps(make_tokens())
    with TemporaryDirectory() as folder:
        path = given_maps.save(Path(folder, "maps.safetensors"))
        same_maps(given_maps, Maps.load(path))


def test_to_html(tmp_path):
    page = maps().to_html(tmp_path / "maps.html").read_text()
    assert '"kind":"maps"' in page
    with pytest.raises(ResultFileError, match="cannot write"):
        maps().to_html(tmp_path / "missing" / "maps.html")


def test_repr():
    assert repr(maps()) == "Maps(2 sites: encoder.0 (2, 3, 3), cross.1 (1, 1, 2))"
    three = Maps(
        tuple(Site("encoder", layer, 1) for layer in range(3)),
        (np.zeros((1, 1, 1)),) * 3,
        film().tokens,
        ((0,),) * 3,
        ((0,),) * 3,
    )
    assert repr(three) == "Maps(3 sites: encoder.0 (1, 1, 1), encoder.1 (1, 1, 1), …)"


def test_a_site_is_found_by_its_number_and_by_its_name():
    made = maps()
    assert made[0] is made["encoder.0"] is made.weights[0]
    assert made[-1] is made[1] is made["cross.1"] is made[np.int64(1)]
    assert made.query_tokens(1) == made.query_tokens("cross.1") == ("x",)
    assert made.key_tokens(-1) == ("a", "b")


def test_maps_are_counted_and_iterated_by_site():
    made = maps()
    assert len(made) == 2
    assert [site.name for site, _ in made] == ["encoder.0", "cross.1"]
    assert all(array is made[number] for number, (_, array) in enumerate(made))
    assert "cross.1" in made and "cross.0" not in made and 0 not in made


@pytest.mark.parametrize("wrong", [2, -3, 0.5, None, slice(0, 1), (0, 1)])
def test_a_wrong_number_is_refused_with_what_is_allowed(wrong):
    allowed = r"use a name, 'encoder.0' to 'cross.1', or a number from -2 to 1"
    with pytest.raises(UsageError, match=allowed):
        maps()[wrong]


def test_without_sites_the_message_says_so():
    tokens = maps().tokens
    with pytest.raises(UsageError, match="no map at 0: there are no sites"):
        Maps((), (), tokens, (), ())[0]

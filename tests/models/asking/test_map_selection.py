"""What is held of the attention: the sites, heads and rows asked for, and nothing else."""

from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
import torch
from subjects import TEXTS, small, subject
from tiny import BERT_SHAPE, LLAMA_SHAPE, TASKS

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.map_selection import choose_sites, map_bytes
from attlas.models.tap import opening
from attlas.results import Maps, Site

TEXT = "the film was not good"
NEAR = {"rtol": 1e-4, "atol": 1e-5}
PAIR = "sequence to sequence"


@pytest.fixture
def eager(monkeypatch):
    """The modules whose attention is spelled out."""
    called, run_eager = [], opening.run_eager

    def spy(module, *args, **kwargs):
        called.append(module)
        return run_eager(module, *args, **kwargs)

    monkeypatch.setattr(opening, "run_eager", spy)
    return called


def names(maps):
    return [site.name for site in maps.sites]


@pytest.mark.parametrize("task", TASKS)
def test_one_site_is_what_it_is_among_all(task):
    asked, text = subject(task), TEXTS[task][0]
    whole = asked.attention(text)
    for site in asked.sites:
        found = asked.attention(text, sites=site.name)
        assert names(found) == [site.name]
        np.testing.assert_allclose(found[site.name], whole[site.name], **NEAR)
        assert found.query_tokens(site.name) == whole.query_tokens(site.name)


@pytest.mark.parametrize(
    ("sites", "expected"),
    [
        ("cross", ["cross.0", "cross.1"]),
        ("decoder.1", ["decoder.1"]),
        (0, ["encoder.0", "decoder.0", "cross.0"]),
        (-1, ["encoder.1", "decoder.1", "cross.1"]),
        (["cross.1", "encoder", -1], ["encoder.0", "encoder.1", "decoder.1", "cross.1"]),
        ([], []),
    ],
)
def test_sites_by_name_kind_and_layer(sites, expected):
    assert names(subject(PAIR).attention(TEXT, sites=sites)) == expected


def test_layers_are_counted_from_the_top_of_each_kind():
    sites = [Site("encoder", 0, 2), Site("encoder", 1, 2), Site("decoder", 0, 2)]
    assert choose_sites(sites, -1) == (sites[1], sites[2])
    assert choose_sites(sites, 1) == (sites[1],)


@pytest.mark.parametrize("heads", [0, -1, [1], [3, 0]])
@pytest.mark.parametrize("queries", [0, -1, [2], [4, 1, -2]])
def test_heads_and_rows_in_the_order_asked_for(heads, queries):
    asked = subject("sequence classification")
    whole = asked.attention(TEXT)
    found = asked.attention(TEXT, heads=heads, queries=queries)
    chosen, rows = np.atleast_1d(heads), np.atleast_1d(queries)
    for site, weights in found:
        assert site.heads == len(chosen)
        assert np.array_equal(weights, whole[site.name][chosen][:, rows])
        tokens = whole.query_tokens(site.name)
        assert found.query_tokens(site.name) == tuple(tokens[i] for i in rows)
        assert found.key_tokens(site.name) == whole.key_tokens(site.name)


def test_rows_of_an_encoder_decoder_are_those_of_each_site():
    asked = subject(PAIR)
    whole, found = asked.attention(TEXT), asked.attention(TEXT, queries=-1)
    for site, weights in found:
        assert np.array_equal(weights, whole[site.name][:, -1:])
        assert found.query_tokens(site.name) == whole.query_tokens(site.name)[-1:]


def test_a_part_can_be_saved_and_shown(tmp_path):
    found = subject(PAIR).attention(TEXT, sites="cross.1", heads=[1], queries=[0, 2])
    again = Maps.load(found.save(tmp_path / "part.attlas"))
    assert again.queries == found.queries and np.array_equal(again["cross.1"], found["cross.1"])
    assert set(found.to_pandas()["query_token"]) == set(found.query_tokens("cross.1"))
    assert found.to_html(tmp_path / "part.html").exists()


def test_the_other_layers_are_not_spelled_out(eager):
    asked = small("Bert", "ForMaskedLM", **{**BERT_SHAPE, "num_hidden_layers": 4})
    assert len(asked.sites) == 4
    for sites, expected in ((None, 4), (-1, 1), ([1, 2], 2), ([], 0)):
        eager.clear()
        asked.attention("a cat sat", sites=sites, heads=0)
        assert len(eager) == expected


def test_a_family_that_writes_its_attention_out():
    asked = small("MPNet", "ForSequenceClassification", **BERT_SHAPE)
    whole, found = asked.attention(TEXT), asked.attention(TEXT, sites=-1, heads=1, queries=[0])
    (site,) = found.sites
    assert np.array_equal(found[site.name], whole[site.name][1:2, :1])


def test_only_what_was_asked_for_stays_in_memory():
    asked = subject("sequence classification")
    inputs = asked.encode(TEXT)
    with asked.folding(lambda call: call.weights[:, [0]]) as held:
        asked.forward(inputs)
    sizes = [weights.untyped_storage().nbytes() for weights in held]
    assert sizes == [4 * len(inputs.tokens[0]) ** 2] * 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sites": 2}, "unknown layer 2: this model has layers 0 to 1"),
        ({"sites": -3}, "unknown layer -3: this model has layers 0 to 1"),
        ({"heads": 4}, r"unknown head 4 at encoder\.0: it has 0 to 3"),
        ({"queries": [0, 99]}, r"unknown query 99 at encoder\.0: it has 0 to \d"),
        ({"heads": "a"}, "heads are whole numbers, not 'a'"),
        ({"heads": [0, None]}, "heads are whole numbers, not None"),
        ({"queries": 1.5}, r"queries are whole numbers, not 1\.5"),
        ({"sites": 0.5}, r"sites are names, kinds or layer numbers, not 0\.5"),
        ({"sites": ["encoder", None]}, "sites are names, kinds or layer numbers, not None"),
    ],
)
def test_what_is_not_there(asked, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users call it
    with pytest.raises(UsageError, match=message):
        subject("sequence classification").attention(TEXT, **asked)


def test_an_unknown_site_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown site 'encodr\.1'.*'encoder\.1'"):
        subject("sequence classification").attention(TEXT, sites="encodr.1")


def test_what_maps_take():
    asked = subject(PAIR)
    inputs = asked.encode(TEXT)
    whole = asked.attention(TEXT)
    assert map_bytes(inputs, asked.sites) == sum(weights.nbytes for _, weights in whole)
    assert map_bytes(inputs, []) == 0


def test_longer_texts_share_smaller_batches(monkeypatch):
    from attlas.models.asking import open_model as room

    asked = subject("sequence classification")
    inputs = asked.encode(TEXT)
    layer = map_bytes(inputs, asked.sites[:1])
    monkeypatch.setattr(room, "MAP_BYTES", 8 * layer)
    assert asked.rows_at_once(inputs) == 8 // room.COPIES
    assert asked.rows_holding(inputs, asked.sites) == 4
    assert asked.rows_holding(inputs, asked.sites[:1]) == 8
    assert asked.rows_holding(inputs, ()) == room.MOST_ROWS["cpu"]
    monkeypatch.setattr(room, "MAP_BYTES", 1)
    assert asked.rows_at_once(inputs) == asked.rows_holding(inputs, asked.sites) == 1


def test_a_large_gpu_takes_larger_batches(monkeypatch):
    from attlas.models.asking import open_model as room

    device, memory = torch.device("cuda"), SimpleNamespace(total_memory=2**37)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: memory)
    monkeypatch.setattr(room, "free_bytes", lambda _: 2**40)
    assert room._rows(torch.device("cpu"), 2**25) == 32
    assert room._rows(device, 2**25) == 128
    assert room._rows(device, 1) == room.MOST_ROWS["cuda"]
    assert room._rows(device, 2**25, wanted=2) == room.MOST_ROWS["cuda"]  # they fit anyway
    assert room._rows(device, 2**25, wanted=3) == 128
    memory.total_memory = 2**33
    assert room._rows(device, 2**25) == 32


def test_what_may_pass_through_is_settled_before_anything_is_asked(eager):
    asked = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    assert asked.sites
    eager.clear()
    with asked.tap(sites=()), torch.no_grad():
        asked.model(input_ids=torch.tensor([[5, 6, 7, 8]]))
    assert not eager

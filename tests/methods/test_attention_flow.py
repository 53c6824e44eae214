"""Attention flow against networkx on the attention that transformers itself returns."""

import networkx
import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, attention_of, plain, small, subject
from tiny import BART_SHAPE, BERT_SHAPE, LABELS, MODERNBERT, labels

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.methods import METHODS
from attlas.models.asking.reading import find_readout, read_attention
from attlas.models.encoding.request import Request

MODERN = {**BERT_SHAPE, "num_hidden_layers": 3, **MODERNBERT, **labels(*LABELS)}


@torch.no_grad()
def layers_of(task, text, fusion="mean"):
    """The attention of each kind of site, heads joined, from the plain model."""
    join = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}[fusion]
    given = arguments(task, text, **ASKED.get(task, {}))
    found = attention_of(plain(task)(**given, output_attentions=True))
    return {k: [join(a[0].double(), dim=0) for a in layers] for k, layers in found.items()}


def bypassed(layer, residual):
    """What each position keeps, and what it reads, together one."""
    total = residual + (1 - residual) * layer.sum(-1, keepdim=True)
    return (residual / total)[:, 0], (1 - residual) * layer / total


def add_own(graph, stream, level, layer, residual):
    """One more layer of self-attention, and the level above it."""
    kept, read = bypassed(layer, residual)
    for i, row in enumerate(read + torch.diag(kept)):
        for j, weight in enumerate(row.tolist()):
            graph.add_edge((stream, level + 1, i), (stream, level, j), capacity=weight)
    return level + 1


def graph_of(layers, residual=0.5):
    """The network of a model, and the level of its top."""
    graph, level = networkx.DiGraph(), 0
    for layer in layers.get("only", layers.get("encoder", [])):
        level = add_own(graph, "source", level, layer, residual)
    if "cross" not in layers:
        return graph, ("source", level)
    encoded, level = level, 0
    for own, other in zip(layers["decoder"], layers["cross"], strict=True):
        level = add_own(graph, "prefix", level, own, residual)
        kept, read = bypassed(other, residual)
        for i, row in enumerate(read):
            here = ("prefix", level + 1, i)
            graph.add_edge(here, ("prefix", level, i), capacity=float(kept[i]))
            for j, weight in enumerate(row.tolist()):
                graph.add_edge(here, ("source", encoded, j), capacity=weight)
        level += 1
    return graph, ("prefix", level)


def expected_row(graph, start, ends):
    """The largest flow to each end, scaled to sum to one."""
    flows = [networkx.maximum_flow_value(graph, start, end) for end in ends]
    return np.array(flows) / sum(flows)


@pytest.mark.parametrize(("residual", "fusion"), [(0.5, "mean"), (0.2, "max"), (0.0, "min")])
def test_equals_networkx_on_a_real_model(residual, fusion):
    name = "sequence classification"
    graph, top = graph_of(layers_of(name, TEXTS[name][0], fusion), residual)
    found = attlas.explain(
        subject(name), TEXTS[name][0], "attention_flow", residual=residual, fusion=fusion
    )
    ends = [("source", 0, i) for i in range(len(found.tokens))]
    np.testing.assert_allclose(found.scores, expected_row(graph, (*top, 0), ends), atol=1e-6)
    assert found.maps is None


def test_a_causal_model():
    graph, top = graph_of(layers_of("causal lm", "a cat sat"))
    found = attlas.explain(subject("causal lm"), "a cat sat", "attention_flow")
    count = len(found.tokens)
    expected = expected_row(graph, (*top, count - 1), [("source", 0, i) for i in range(count)])
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


@pytest.mark.parametrize("residual", [0.5, 0.1])
def test_an_encoder_decoder(residual):
    name = "sequence to sequence"
    graph, top = graph_of(layers_of(name, TEXTS[name][1]), residual)
    found = attlas.explain(
        subject(name), TEXTS[name][1], "attention_flow", residual=residual, **ASKED[name]
    )
    source = found.segments.count("text")
    prefix = len(found.tokens) - source
    ends = [("source", 0, i) for i in range(source)] + [("prefix", 0, i) for i in range(prefix)]
    expected = expected_row(graph, (*top, prefix - 1), ends)
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_a_decoder_that_reads_a_copy_of_the_source():
    """BART's classifier hands its decoder the text, one place late: one token, one end."""
    settings = {**BART_SHAPE, **labels(*LABELS)}
    bart = small("Bart", "ForSequenceClassification", "word_level", **settings)
    found = attlas.explain(bart, "the cat sat", "attention_flow")
    layers = {kind: [] for kind in ("encoder", "decoder", "cross")}
    for site, weights in bart.attention("the cat sat"):
        layers[site.kind].append(torch.from_numpy(weights.mean(0)).double())
    graph, top = graph_of(layers)
    count = len(found.tokens)
    same = {("prefix", 0, i): ("source", 0, (i - 1) % count) for i in range(count)}
    graph = networkx.relabel_nodes(graph, same)
    ends = [("source", 0, i) for i in range(count)]
    np.testing.assert_allclose(
        found.scores, expected_row(graph, (*top, count - 1), ends), atol=1e-6
    )


def test_an_encoder_without_attention():
    plain_dates = attlas.load("dates_plain")
    found = attlas.explain(plain_dates, "3 May 99", "attention_flow", prefix="19")
    layers = {kind: [] for kind in ("decoder", "cross")}
    (question,) = plain_dates.ask(["3 May 99"], Request(prefix="19"))
    for call in read_attention(question):
        layers[call.site.kind].append(call.weights[0].double().mean(0))
    graph, top = graph_of(layers)
    prefix, source = layers["cross"][0].shape
    ends = [("source", 0, i) for i in range(source)] + [("prefix", 0, i) for i in range(prefix)]
    expected = expected_row(graph, (*top, prefix - 1), ends)
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_a_pooled_readout_takes_its_rows_by_their_shares():
    pooled = {**MODERN, "classifier_pooling": "mean"}
    asked = small("ModernBert", "ForSequenceClassification", **pooled)
    (question,) = asked.ask(["a cat sat"], Request())
    (shares,) = find_readout(question).numpy()
    found = attlas.explain(asked, "a cat sat", "attention_flow")
    layers = [
        torch.from_numpy(weights.mean(0)).double() for _, weights in asked.attention("a cat sat")
    ]
    graph, top = graph_of({"only": layers})
    count = len(found.tokens)
    ends = [("source", 0, i) for i in range(count)]
    rows = [expected_row(graph, (*top, i), ends) for i in range(count)]
    np.testing.assert_allclose(found.scores, shares @ np.stack(rows), atol=1e-6)
    assert (shares > 0).all()


def test_the_full_map():
    name = "token classification"
    graph, top = graph_of(layers_of(name, "a cat sat"))
    found = attlas.explain(subject(name), "a cat sat", "attention_flow", position=2, full=True)
    count = len(found.tokens)
    ends = [("source", 0, i) for i in range(count)]
    expected = np.stack([expected_row(graph, (*top, i), ends) for i in range(count)])
    np.testing.assert_allclose(found.maps["all"][0], expected, atol=1e-6)
    np.testing.assert_allclose(found.scores, expected[2], atol=1e-6)


def test_maps_that_are_not_wanted_are_not_worked_out():
    found = attlas.explain(subject("causal lm"), "a cat", "attention_flow", maps=False, full=True)
    assert found.maps is None


def test_processes_give_the_same():
    texts = [[5, 6, 7, 8], [9, 8, 5, 6]]
    one, two = (
        attlas.explain(subject("causal lm"), texts, "attention_flow", full=True, processes=count)
        for count in (1, 2)
    )
    for alone, shared in zip(one, two, strict=True):
        assert np.array_equal(alone.scores, shared.scores)
        assert np.array_equal(alone.maps["all"], shared.maps["all"])


def test_several_targets_of_one_input():
    first, second = (ask("token classification", position=place) for place in (1, 3))
    both = first.asking([*first.targets, *second.targets])
    for name in ("attention_flow", "attention_rollout", "raw_attention"):
        method = METHODS[name].score_tokens
        expected = torch.cat([method(first).scores, method(second).scores])
        torch.testing.assert_close(method(both).scores, expected)
        assert not torch.allclose(expected[0], expected[1])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"residual": 1.5}, "residual is a share, between 0 and 1, not 1.5"),
        ({"processes": 0}, "processes is the number of processes, 1 or more, not 0"),
    ],
)
def test_options_out_of_range(option, message):
    with pytest.raises(UsageError, match=message):
        attlas.explain(subject("causal lm"), "the cat", "attention_flow", **option)


def test_unknown_fusion():
    with pytest.raises(UnknownNameError, match=r"unknown head fusion 'median': .*mean, max, min"):
        attlas.explain(subject("causal lm"), "the cat", "attention_flow", fusion="median")

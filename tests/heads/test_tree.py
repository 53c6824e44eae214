"""The verb `attribution_tree`: held to the maps of `attattr` and to known truth."""

import numpy as np
import pytest
import subjects
from subjects import LONG, subject

import attlas
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.results import Edge, Tree

TASK = "sequence classification"


def test_edges_are_the_attribution_summed_over_heads():
    found = attlas.explain(subject(TASK), LONG, "attattr", steps=8)
    maps = np.stack([each.sum(axis=0) for each in found.maps.weights])
    tree = attlas.attribution_tree(subject(TASK), LONG, tau=0.1, steps=8)
    assert len(tree.edges) >= 2
    for edge in tree.edges:
        layer = maps[edge.layer]
        assert edge.attribution == pytest.approx(layer[edge.parent, edge.child], rel=1e-4)
        assert edge.attribution > 0.1 * layer.max() * (1 - 1e-4)
    kept = sum(edge.attribution for edge in tree.edges)
    others = maps.clip(min=0)[:, ~np.eye(maps.shape[-1], dtype=bool)].sum()
    assert tree.share == pytest.approx(kept / others, rel=1e-3)


def test_the_root_is_where_the_prediction_is_read():
    assert attlas.attribution_tree(subject(TASK), LONG, steps=2).root == 0
    last = attlas.attribution_tree(subject("causal lm"), LONG, steps=2)
    assert last.root == len(last.tokens) - 1
    released = attlas.attribution_tree(subject("causal lm"), LONG, steps=2, variant="released")
    assert released.root == len(last.tokens) - 1


def test_a_root_can_be_chosen():
    tree = attlas.attribution_tree(subject(TASK), LONG, root=-2, tau=0.0, steps=2)
    assert tree.root == len(tree.tokens) - 2


def test_the_released_variant_starts_from_a_word():
    tree = attlas.attribution_tree(subject(TASK), LONG, variant="released", steps=2)
    assert tree.root != 0


def test_higher_costs_and_thresholds_leave_fewer_edges():
    model = subject(TASK)
    many = attlas.attribution_tree(model, LONG, tau=0.0, steps=2)
    assert attlas.attribution_tree(model, LONG, tau=0.0, lambda_=1.0, steps=2).edges == ()
    assert len(attlas.attribution_tree(model, LONG, tau=0.9, steps=2).edges) < len(many.edges)


def test_what_is_known_of_a_model_shows_in_its_tree():
    """The planted word decides, and it is what the tree reads."""
    model = attlas.load("shortcut_token")
    tree = attlas.attribution_tree(model, "the grey barge left a amber gate near the mill")
    labels = tree.tokens.labels()
    assert tree.target.name == "LEFT"
    assert labels[tree.root] == "[CLS]"
    assert "amber" in {labels[edge.child] for edge in tree.edges}


def test_pictures_have_trees_too():
    tree = attlas.attribution_tree(
        subject("image classification"), subjects.picture(0), tau=0.2, steps=2
    )
    assert tree.payload()["pictures"] and "image = ..." in tree.code()


def test_saved_and_loaded_it_is_the_same(tmp_path):
    tree = attlas.attribution_tree(subject("next sentence"), (LONG, "a cat sat"), tau=0.1, steps=2)
    back = Tree.load(tree.save(tmp_path / "tree.safetensors"))
    assert back.to_dict() == tree.to_dict()
    assert back.payload() == tree.payload()


def test_the_code_gives_the_same_tree():
    tree = attlas.attribution_tree(attlas.load(), LONG, "NEGATIVE", tau=0.3, lambda_=0.001)
    scope = {}
    lines = tree.code().splitlines()
    exec("\n".join([*lines[:-1], f"found = {lines[-1]}"]), scope)
    assert scope["found"].edges == tree.edges
    assert scope["found"].target == tree.target


def test_the_graph_has_the_nodes_and_edges():
    tree = attlas.attribution_tree(subject(TASK), LONG, tau=0.1, steps=2)
    graph = tree.to_networkx()
    assert dict(graph.nodes(data="layer")) == tree.nodes
    assert {(a, b): d["attribution"] for a, b, d in graph.edges(data=True)} == {
        (edge.parent, edge.child): edge.attribution for edge in tree.edges
    }
    assert graph.graph["root"] == tree.root


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"tau": 2}, UsageError, "between 0 and 1"),
        ({"lambda_": -1}, UsageError, "between 0 and 1"),
        ({"variant": "other"}, UnknownNameError, "published, released"),
        ({"variant": "released", "lambda_": 0.1}, UsageError, "takes no lambda_"),
        ({"root": 99}, UsageError, "unknown position 99"),
        ({"steps": 0}, UsageError, "at least 1"),
    ],
)
def test_mistakes_are_named(options, error, said):
    with pytest.raises(error, match=said):
        attlas.attribution_tree(subject(TASK), LONG, **options)


def test_many_texts_and_several_stacks_are_refused():
    with pytest.raises(UsageError, match="one text"):
        attlas.attribution_tree(subject(TASK), [LONG, LONG])
    with pytest.raises(UnsupportedModelError, match="encoder, decoder, cross"):
        attlas.attribution_tree(subject("sequence to sequence"), LONG)


def test_edges_that_make_no_tree_are_refused():
    tree = attlas.attribution_tree(subject(TASK), LONG, tau=0.1, steps=2)
    for wrong in (Edge(0, 3, 3, 0.1), Edge(0, 0, 0, 0.1)):
        with pytest.raises(UsageError, match="does not continue"):
            Tree(tree.tokens, 0, (wrong,), 2, 0.5, tree.target, tree.origin)

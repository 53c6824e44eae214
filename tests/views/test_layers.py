"""Readers are given one name for a layer, whatever view, table or sentence names it."""

from subjects import TEXTS, subject

import attlas
from attlas.trials.head_patterns import head_patterns
from attlas.views.units import head_name, layer_names


def test_a_layer_has_its_number_and_among_several_kinds_its_key():
    assert layer_names(["encoder.0", "encoder.11"]) == {
        "encoder.0": "layer 0",
        "encoder.11": "layer 11",
    }
    several = ["encoder.0", "decoder.0", "cross.0"]
    assert layer_names(several) == {key: key for key in several}
    assert layer_names(["all"]) == {"all": "all"} and layer_names([]) == {}
    assert head_name("layer 2", 3) == "layer 2 · head 3"


def test_what_readers_see_names_no_site_by_its_key():
    asked, texts = subject("sequence classification"), TEXTS["sequence classification"]
    found = attlas.explain(asked, texts[0], "effective_attention", maps=True)
    tried = head_patterns(asked.ask(texts[:2]))
    assert "layer " in f"{tried.sentence} {tried.plots}" and "encoder." not in tried.sentence
    assert "encoder." not in str(tried.plots)
    heads = attlas.head_importance(asked, [(each, 0) for each in texts[:2]], "attention")
    for result in (found, found.maps, heads, attlas.head_redundancy(asked, texts[:2])):
        shown = result._repr_html_()
        assert "layer " in shown and "encoder." not in shown, type(result)

"""Which rows and keys a scope opens, against what a model depends on when they are touched."""

import pytest
import tiny
import torch
from subjects import ASKED, TEXTS, small, subject

from attlas import Subject
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.reading import read_attention
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.models.tap.edits import Edit, apply
from attlas.trials import Scope

MISTRAL = {**tiny.LLAMA_SHAPE, "sliding_window": 3}


def ask(task, index=0):
    return subject(task).ask([TEXTS[task][index]], Request(**ASKED.get(task, {})))[0]


def touch(site, row):
    """The weights of one row thrown together: each key its neighbour's."""

    def change(weights, visible):
        new = weights.clone()
        new[:, :, row] = weights[:, :, row].roll(1, -1) * 3 + 0.1
        return new

    return Edit("touch", change).at(kind=site.kind, layer=site.layer)


def rows_that_matter(question, site, length):
    own = target_scores(question, "logit", apply(torch.clone).at(kind=site.kind, layer=site.layer))
    return [
        bool(target_scores(question, "logit", touch(site, row)) != own) for row in range(length)
    ]


@pytest.mark.parametrize(
    "task", ["sequence classification", "masked lm", "causal lm", "sequence to sequence"]
)
def test_a_row_counts_if_the_answer_depends_on_it(task):
    question = ask(task)
    for opened in Scope("all").open_sites(question):
        expected = rows_that_matter(question, opened.site, opened.rows.shape[1])
        assert opened.rows[0].tolist() == expected, opened.site.name


def test_windows_leave_out_rows_that_lie_too_far_back():
    asked = small("Mistral", "ForCausalLM", "bpe", **MISTRAL)
    (question,) = asked.ask(["the film was not good and not bad"])
    found = Scope("all").open_sites(question)
    for opened in found:
        expected = rows_that_matter(question, opened.site, opened.rows.shape[1])
        assert opened.rows[0].tolist() == expected
    assert not found[0].rows.all()


def test_special_keys_are_held_unless_they_are_asked_for():
    question = ask("sequence classification")
    special = question.inputs.tokens[0].special
    (held,), (all_in,) = Scope().open_sites(question), Scope(specials=True).open_sites(question)
    assert held.keys[0].tolist() == [not each for each in special]
    assert any(special)
    assert all_in.keys.all()


def test_a_first_token_with_most_of_the_weight_is_held_as_a_sink():
    asked = small("GPT2", "LMHeadModel", "bpe", **tiny.GPT2_SHAPE)
    (question,) = asked.ask(["the film was not good"])
    assert not question.inputs.tokens[0].special[0]

    def on_first(weights, visible):
        new = weights * 0.4
        new[..., 0] += 0.6
        return new

    def on_second(weights, visible):
        new = weights * 0.4
        new[..., 1:, 1] += 0.6
        new[..., 0, 0] = 1
        return new

    with asked.tap(Edit("sink", on_first), sites=()):
        (sunk,) = Scope().open_sites(question)
        (free,) = Scope(specials=True).open_sites(question)
    with asked.tap(Edit("no sink", on_second), sites=()):
        (other,) = Scope().open_sites(question)
    assert sunk.sinks[0].tolist() == [True, *[False] * (sunk.keys.shape[1] - 1)]
    assert sunk.keys[0].tolist() == (~sunk.sinks[0]).tolist()
    assert free.keys.all()
    assert other.keys.all()


def test_entries_are_what_a_row_sees_of_what_is_open():
    question = ask("causal lm")
    opened = Scope("layer", 0).open_sites(question)[0]
    call = read_attention(question)[0]
    entries = opened.entries(call.visible)[0, 0]
    special = question.inputs.tokens[0].special
    size = len(special)
    expected = [[j <= i and not special[j] for j in range(size)] for i in range(size)]
    assert entries.tolist() == expected


def test_the_sites_of_a_scope():
    bert, t5 = subject("sequence classification"), subject("sequence to sequence")
    assert [site.name for site in Scope().sites(bert)] == ["encoder.1"]
    assert [site.name for site in Scope("layer", -2).sites(bert)] == ["encoder.0"]
    assert [site.name for site in Scope("layer").sites(bert)] == ["encoder.0", "encoder.1"]
    assert [scope.layer for scope in Scope("layer", frozen=True).in_turn(bert)] == [0, 1]
    assert all(scope.frozen for scope in Scope("layer", frozen=True).in_turn(bert))
    assert Scope().in_turn(bert) == (Scope(),)
    assert [site.name for site in Scope().sites(t5)] == ["cross.1"]
    assert Scope("all").sites(t5) == t5.sites


def test_a_scope_says_what_it_is():
    assert str(Scope()) == (
        "last layer, all heads, the rows that are read, content keys; the rest stays fixed"
    )
    assert "layer 3" in str(Scope("layer", 3))
    assert "keep their attention" in str(Scope("layer", 3, frozen=True))
    assert "all keys" in str(Scope(specials=True))


def test_what_cannot_be_is_refused():
    with pytest.raises(UnknownNameError, match="readout"):
        Scope("readuot")
    with pytest.raises(UsageError, match="takes no layer"):
        Scope("all", 2)
    with pytest.raises(UsageError, match="layers 0 to 1"):
        Scope("layer", 2).sites(subject("sequence classification"))


def test_a_text_with_a_picture_is_refused():
    with pytest.raises(UnsupportedModelError, match="text and a picture"):
        Scope().sites(Subject(*tiny.lxmert_subject()))

"""Conversations wherever a text is taken."""

import numpy as np
import pytest
from tiny import subject_parts

import attlas
from attlas.errors import UsageError
from attlas.models.encoding.request import Request

TEMPLATE = (
    "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
TALK = [
    {"role": "system", "content": "the dog sat"},
    {"role": "user", "content": "the film was long"},
    {"role": "assistant", "content": "the cat"},
    {"role": "user", "content": "the film"},
]
SHORT = [{"role": "user", "content": "the dog sat on the mat"}]
SEGMENTS = ["1 system", "2 user", "3 assistant", "4 user", "5 assistant"]


@pytest.fixture
def chatty(monkeypatch):
    model, words = subject_parts("causal lm")
    monkeypatch.setattr(words, "chat_template", TEMPLATE)
    return attlas.Subject(model, words)


def ids_of(chatty, messages):
    return chatty.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]


def test_a_conversation_is_explained_as_its_token_ids_are(chatty):
    found = attlas.explain(chatty, TALK, "raw_attention")
    alone = attlas.explain(chatty, ids_of(chatty, TALK), "raw_attention")
    np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-6)
    assert found.target == alone.target
    assert list(dict.fromkeys(found.segments)) == SEGMENTS


def test_a_list_of_conversations_gives_a_list(chatty):
    both = attlas.explain(chatty, [TALK, SHORT], "raw_attention")
    assert [each.tokens for each in both] == [
        attlas.explain(chatty, each, "raw_attention").tokens for each in (TALK, SHORT)
    ]
    assert len(attlas.explain_generation(chatty, [TALK, SHORT], "raw_attention")) == 2
    assert len(chatty.predict([TALK, SHORT])) == 2
    assert len(chatty.predict(SHORT)) == 1


def test_scores_by_message_add_up(chatty):
    found = attlas.explain(chatty, TALK, "gradient_attention")
    table = found.aggregate("segments")
    assert table["segment"].tolist() == SEGMENTS
    assert table["score"].sum() == pytest.approx(float(found.scores.sum()), abs=1e-6)
    inside = [i for i, name in enumerate(found.segments) if name == "2 user"]
    content = [i for i in inside if not found.tokens.special[i]]
    row = table.set_index("segment").loc["2 user"]
    assert row["content"] == pytest.approx(float(found.scores[content].sum()), abs=1e-6)
    assert row["positions"] == tuple(inside)


def test_a_generation_by_message(chatty):
    found = attlas.explain_generation(chatty, TALK, "raw_attention", max_new_tokens=3)
    table = found.aggregate("segments")
    assert [name for _, name in table.columns] == [*SEGMENTS, "output"]
    assert list(table.index.get_level_values("text")) == ["output"]
    np.testing.assert_allclose(table.to_numpy().sum(), found.scores.sum(axis=1).mean(), rtol=1e-5)


def test_a_conversation_can_be_saved_and_computed_again(chatty, tmp_path):
    tools = {"messages": SHORT, "tools": [{"name": "bus"}]}
    for talk in (TALK, tools):
        found = attlas.explain(chatty, talk, "raw_attention")
        found.save(tmp_path / "one")
        read = attlas.Explanation.load(tmp_path / "one")
        assert read.origin.asked["text"] == talk
        assert f"explain(subject, {talk!r}" in found.code()


def test_a_contrast_is_read_behind_the_chat(chatty):
    found = attlas.explain(chatty, SHORT, "raw_attention", target=" the")
    against = attlas.explain(chatty, SHORT, "gradient_attention", target=" the", contrast=" was")
    assert (found.target.name, against.target.contrast) == (" the", " was")


def test_attention_and_tree_take_conversations(chatty):
    maps = chatty.attention(SHORT)
    assert len(maps.tokens) == len(ids_of(chatty, SHORT))
    assert chatty.attention("the dog sat on the mat", chat=True).tokens == maps.tokens
    tree = attlas.attribution_tree(chatty, SHORT, steps=4)
    assert tree.tokens == maps.tokens
    assert tree.origin.asked["text"] == SHORT


def test_markup_is_not_removed(chatty):
    found = attlas.explain(chatty, TALK, "leave_one_out")
    marks = np.array(found.tokens.special)
    assert not found.scores[marks].any()
    (question,) = chatty.ask([TALK], Request())
    assert question.inputs.tokens[0] == found.tokens


def test_a_conversation_is_judged(chatty):
    found = attlas.explain(chatty, SHORT, "raw_attention")
    judged = attlas.judge(chatty, found, ["comprehensiveness"], shuffles=2)
    assert judged.explanation.tokens == found.tokens
    content = found.scores[~np.array(found.tokens.special)].tolist()
    again = attlas.judge(chatty, content, ["comprehensiveness"], text=SHORT, shuffles=2)
    np.testing.assert_allclose(
        again.to_pandas()["value"].to_numpy(float), judged.to_pandas()["value"].to_numpy(float)
    )


@pytest.mark.slow
def test_an_audit_reads_a_file_of_messages(chatty, tmp_path):
    pets = ["dog", "cat", "film", "fox", "book", "bus"]
    lines = [[{"role": "user", "content": f"the {pet} sat on the mat"}] for pet in pets]
    asked = {"trials": [], "methods": ["raw_attention"], "measures": ["comprehensiveness"]}
    report = attlas.audit(chatty, lines, quick=True, out=tmp_path / "audit", **asked)
    assert report.data.texts == len(pets)


def test_a_message_without_its_role_is_told_what_it_lacks():
    with pytest.raises(UsageError, match=r"a message has a role and a content: .*, not .*'rol'"):
        attlas.explain(attlas.load("recall"), [{"rol": "user", "content": "b bee"}])

"""Conversations: the ids that transformers makes of them, and which token is whose."""

import json

import pytest
from tiny_tokenizers import tokenizer

from attlas.data.conversations import Conversation, is_conversation
from attlas.errors import TextTooLongError, UsageError
from attlas.models.encoding.chat_parts import chat_text
from attlas.models.encoding.text_inputs import encode_chat

SYSTEM = {"role": "system", "content": "user"}  # a content that is also markup
ASKED = {"role": "user", "content": " the film was long "}
SAID = {"role": "assistant", "content": "the dog"}
THEN = {"role": "user", "content": "the film"}
CALLED = {"role": "assistant", "tool_calls": [{"function": {"name": "bus", "arguments": {}}}]}
FOUND = {"role": "tool", "content": "a road"}
TOOLS = [{"type": "function", "function": {"name": "bus"}}]

MARKED = (
    "{% for m in messages %}<s>{{ m.role }}: {{ m.content | trim }}"
    "{% for call in m.tool_calls or [] %}{{ call | tojson }}{% endfor %}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)
# As Llama 2: the system prompt stands within the first message of the user.
MERGED = (
    "{% set first = messages[0].content if messages[0].role == 'system' else '' %}"
    "{% for m in messages %}{% if m.role == 'user' %}<s>[ {{ first if loop.index < 3 }}; "
    "{{ m.content }} ]{% elif m.role == 'assistant' %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
# As Qwen: a system prompt of its own, and tools behind it.
OWN_SYSTEM = (
    "<s>system: {% if messages[0].role == 'system' %}{{ messages[0].content }}"
    "{% else %}walk home{% endif %}{% if tools %}; tools {{ tools | tojson }}{% endif %}</s>"
    "{% for m in messages %}{% if m.role != 'system' %}<s>{{ m.role }}: {{ m.content }}</s>"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
# As Qwen 3: a turn of the system only for what there is.
FOR_TOOLS = (
    "{% if tools %}<s>system: {% if messages[0].role == 'system' %}{{ messages[0].content }}; "
    "{% endif %}# {{ tools | tojson }}</s>{% elif messages[0].role == 'system' %}"
    "<s>system: {{ messages[0].content }}</s>{% endif %}"
    "{% for m in messages %}{% if m.role != 'system' %}<s>{{ m.role }}: {{ m.content }}</s>"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
# As Mistral: the system prompt stands before the last message of the user.
MOVED = (
    "{% for m in messages %}{% if m.role == 'user' %}<s>[ {% if loop.last and "
    "messages[0].role == 'system' %}{{ messages[0].content }}; {% endif %}{{ m.content }} ]"
    "{% elif m.role == 'assistant' %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
REFUSING = "{{ raise_exception('only users may speak') }}"
REWRITING = "{% for m in messages %}{{ m.content | upper }}{{ m.content | length }}{% endfor %}"


def encoded(template, messages, tools=(), limit=999, truncate=False):
    words = tokenizer("bpe")
    words.chat_template = template
    given = Conversation.of({"messages": messages, "tools": tools})
    return encode_chat(words, given, limit, truncate)


def said(tokens):
    """The text of the tokens of each segment that are no markup."""
    found = {}
    for name, span, special in zip(tokens.segments, tokens.offsets, tokens.special, strict=True):
        if not special:
            found.setdefault(name, []).append(tokens.sources[name][slice(*span)])
    return {name: "".join(pieces) for name, pieces in found.items()}


@pytest.fixture(autouse=True)
def template_put_back():
    yield
    tokenizer("bpe").chat_template = None


@pytest.mark.parametrize("template", [MARKED, MERGED, OWN_SYSTEM])
@pytest.mark.parametrize("messages", [[ASKED], [SYSTEM, ASKED], [SYSTEM, ASKED, SAID, THEN]])
def test_the_ids_are_those_of_transformers(template, messages):
    found = encoded(template, messages)
    expected = tokenizer("bpe").apply_chat_template(messages, add_generation_prompt=True)
    assert found.arguments["input_ids"] == expected["input_ids"]


@pytest.mark.parametrize("template", [MARKED, MERGED, MOVED, OWN_SYSTEM])
def test_each_token_says_whose_it_is(template):
    tokens = encoded(template, [SYSTEM, ASKED, SAID, THEN]).tokens
    content = ASKED["content"].strip() if template is MARKED else ASKED["content"]
    assert said(tokens) == {
        "1 system": "user", "2 user": content, "3 assistant": "the dog", "4 user": "the film",
    }  # fmt: skip


def test_markup_belongs_to_its_message():
    tokens = encoded(MARKED, [ASKED, SAID, THEN]).tokens
    shown = {}
    for text, name in zip(tokens, tokens.segments, strict=True):
        shown.setdefault(name, []).append(text)
    assert list(shown) == ["1 user", "2 assistant", "3 user", "4 assistant"]
    for name in ("1 user", "2 assistant", "3 user"):
        assert shown[name][0] == "<s>" and "</s>" in shown[name]
    assert all(
        special
        for name, special in zip(tokens.segments, tokens.special, strict=True)
        if name == "4 assistant"
    )


def test_the_templates_own_system_prompt():
    assert said(encoded(OWN_SYSTEM, [THEN]).tokens) == {
        "0 system": "walk home", "1 user": "the film",
    }  # fmt: skip


@pytest.mark.parametrize("messages", [[THEN], [{"role": "system", "content": "stay"}, THEN]])
def test_tools_are_a_segment_of_their_own(messages):
    found = encoded(OWN_SYSTEM, messages, TOOLS)
    assert json.dumps(TOOLS) in said(found.tokens)["tools"]
    assert said(found.tokens)[f"{len(messages)} user"] == "the film"
    assert found.notes == ()


def test_the_turn_that_a_template_opens_for_tools_alone_is_markup():
    """Qwen 3 has no system prompt of its own, but a turn of the system where there are tools."""
    tokens = encoded(FOR_TOOLS, [THEN], TOOLS).tokens
    assert said(tokens) == {"tools": f"# {json.dumps(TOOLS)}", "1 user": "the film"}
    first = [text for text, name in zip(tokens, tokens.segments, strict=True) if name == "0 system"]
    assert first[0] == "<s>" and "system" in "".join(first) and first[-1] == "</s>"
    both = encoded(FOR_TOOLS, [{"role": "system", "content": "stay"}, THEN], TOOLS).tokens
    assert said(both)["1 system"] == "stay" and json.dumps(TOOLS) in said(both)["tools"]


def test_a_call_of_a_tool_is_said():
    tokens = encoded(MARKED, [THEN, CALLED, FOUND]).tokens
    assert "bus" in said(tokens)["2 assistant"]
    assert said(tokens)["3 tool"] == "a road"


def test_what_a_template_leaves_out_is_told():
    only_first = "{{ messages[0].content }}:"
    assert encoded(only_first, [THEN, SAID, THEN]).notes == (
        "the chat template leaves out message 2, of the role assistant",
        "the chat template leaves out message 3, of the role user",
    )
    assert encoded(MARKED, [THEN], TOOLS).notes == ("the chat template leaves out the tools",)
    found = encoded(MOVED, [THEN, SAID, FOUND], TOOLS)
    assert set(found.tokens.segments) <= {"1 user", "2 assistant", "3 assistant", "4 assistant"}
    assert found.notes == (
        "the chat template leaves out message 3, of the role tool",
        "the chat template leaves out the tools",
    )


def test_messages_that_a_template_rewrites_are_one_segment():
    found = encoded(REWRITING, [THEN])
    assert found.tokens.sources == {"chat": "THE FILM8"}
    assert "not told apart" in found.notes[0]


def test_the_last_message_of_the_model_is_continued():
    found = encoded(MARKED, [THEN, SAID])
    assert found.written.endswith("<s>assistant: the dog")


def test_a_template_that_refuses():
    with pytest.raises(UsageError, match="does not take this conversation: only users may speak"):
        encoded(REFUSING, [THEN])


def test_only_what_was_said_is_cut():
    long = {"role": "user", "content": "the film was long " * 9}
    whole = encoded(MARKED, [SAID | {"role": "user"}, long])
    with pytest.raises(TextTooLongError):
        encoded(MARKED, [SAID | {"role": "user"}, long], limit=len(whole.tokens) - 5)
    found = encoded(
        MARKED, [SAID | {"role": "user"}, long], limit=len(whole.tokens) - 5, truncate=True
    )
    assert len(found.tokens) == len(whole.tokens) - 5
    assert found.tokens.special.count(True) == whole.tokens.special.count(True)
    assert said(found.tokens)["1 user"] == "the dog"
    assert found.notes[0].startswith("cut from")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([{"role": "user"}], "a role and a content"),
        ([{"role": 3, "content": "a"}], "a role and a content"),
        ([{"role": "user", "content": [{"type": "image"}]}], "a picture in a message is"),
        ({"messages": [THEN], "tools": "bus"}, "tools are a list"),
        ({"messages": [THEN], "tool": []}, "not 'tool'"),
    ],
)
def test_what_is_no_conversation(given, why):
    assert is_conversation(given)
    with pytest.raises(UsageError, match=why):
        chat_text(tokenizer("bpe"), given, chat=False)


def test_a_content_in_parts_is_one_text():
    parts = [{"type": "text", "text": "the "}, {"type": "text", "text": "film"}]
    tokens = encoded(MARKED, Conversation.of([{"role": "user", "content": parts}]).messages).tokens
    assert said(tokens) == {"1 user": "the film"}

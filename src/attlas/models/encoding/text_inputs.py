"""Encoding one text as a batch of one, with its continuation if the task needs one."""

from typing import Any

from attlas.data.conversations import is_conversation
from attlas.errors import UsageError
from attlas.models.encoding.chat_parts import conversation_of
from attlas.models.encoding.chats import encode_chat
from attlas.models.encoding.continuations import as_inputs, with_chain, with_prefix
from attlas.models.encoding.encode import Encoded, encode
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.facts.model_facts import ModelFacts

SEGMENTS = ("text", "text_a", "text_b")


def texts_of(given: Any) -> tuple[list[Any], bool]:
    """What a user gave as a list of texts, and whether it was one text alone.

    A Series or an array with one axis is the list of its items.
    """
    if getattr(given, "ndim", None) == 1 and hasattr(given, "tolist"):
        given = given.tolist()
    return ([given], True) if is_one_text(given) else (given, False)


def is_one_text(text: Any) -> bool:
    """Whether this is one text: anything but a list, or a list of token ids or of messages."""
    if not isinstance(text, list) or is_conversation(text):
        return True
    return bool(text) and all(isinstance(each, int) for each in text)


def encode_text(facts: ModelFacts, text: Any, request: Request) -> Inputs:
    """Encode one text as a batch of one, with target tokens or what the decoder has written."""
    name = facts.task.name if facts.task else ""
    encoded = encode_plain(facts, text, request)
    if name == "causal lm":
        return with_chain(facts, encoded, text, request)
    if name == "sequence to sequence" or (not name and facts.has_decoder):
        return with_prefix(facts, encoded, text, request)
    return as_inputs(facts, encoded, text)


def encode_plain(facts: ModelFacts, text: Any, request: Request) -> Encoded:
    """Encode one text with its special tokens and no continuation."""
    name = facts.task.name if facts.task else ""
    conversation = conversation_of(text, request.chat)
    if conversation is not None:
        return encode_chat(facts.tokenizer, conversation, facts.max_tokens, request.truncate)
    names = ("text", "question", "context") if name == "question answering" else SEGMENTS
    if name == "question answering" and not isinstance(text, tuple):
        raise UsageError("this model answers questions: give a pair (question, context)")
    return encode(facts.tokenizer, text, names, facts.max_tokens, request.truncate)

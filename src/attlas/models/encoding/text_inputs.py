"""Encoding one text as a batch of one, with its continuation if the task needs one."""

from typing import Any

from attlas.errors import UsageError
from attlas.models.encoding.continuations import as_inputs, with_chain, with_prefix
from attlas.models.encoding.encode import Encoded, encode
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.facts.model_facts import ModelFacts

SEGMENTS = ("text", "text_a", "text_b")


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
    given = _as_chat(facts.tokenizer, text) if request.chat else text
    names = ("text", "question", "context") if name == "question answering" else SEGMENTS
    if name == "question answering" and not isinstance(given, tuple):
        raise UsageError("this model answers questions: give a pair (question, context)")
    limit = facts.max_tokens
    return encode(facts.tokenizer, given, names, limit, request.truncate, plain=request.chat)


def _as_chat(tokenizer: Any, text: Any) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a chat message is a string, not {type(text).__name__}")
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError("this tokenizer has no chat template")
    message = [{"role": "user", "content": text}]
    written: str = tokenizer.apply_chat_template(
        message, tokenize=False, add_generation_prompt=True
    )
    return written

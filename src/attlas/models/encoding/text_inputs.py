"""Encoding one text or conversation as a batch of one, with its continuation if it needs one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from PIL import Image

from attlas.data.conversations import Conversation, is_conversation
from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.models.encoding.chat_parts import (
    NOT_APART,
    WHOLE,
    ChatPart,
    WrittenChat,
    conversation_of,
    write_chat,
)
from attlas.models.encoding.continuations import (
    as_batch,
    as_inputs,
    names_tokens,
    with_chain,
    with_prefix,
)
from attlas.models.encoding.encode import Encoded, encode, encode_all, fit, mark_special
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.pictures_across import encode_across
from attlas.models.encoding.pictures_in_text import encode_with_pictures, has_pictures
from attlas.models.encoding.request import Request
from attlas.models.encoding.sounds import encode_sound
from attlas.models.encoding.token_ids import offsets_by_decoding
from attlas.models.facts.model_facts import ModelFacts
from attlas.tokens import Span, Tokens, overlap

SEGMENTS = ("text", "text_a", "text_b")
NO_PLACES = "this tokenizer gives no places of its tokens, so the messages are not told apart"

Picture: TypeAlias = Image.Image | np.ndarray
Message: TypeAlias = dict[str, Any]
OneText: TypeAlias = str | tuple[Any, Any] | list[int] | list[Message] | Message | Picture | Example
ManyTexts: TypeAlias = (
    list[str]
    | list[tuple[Any, Any]]
    | list[str | tuple[str, str]]
    | list[list[str]]
    | list[list[int]]
    | list[list[Message]]
    | list[Image.Image]
    | list[np.ndarray]
    | list[Example]
)


def texts_of(given: Any) -> tuple[list[Any], bool]:
    """What a user gave as a list of texts, and whether it was one text alone.

    A Series or an array with one axis is the list of its items.
    """
    if getattr(given, "ndim", None) == 1 and hasattr(given, "tolist"):
        given = given.tolist()
    return ([given], True) if is_one_text(given) else (given, False)


def are_pairs(texts: Sequence[Any]) -> bool:
    """Whether each of these is a pair of texts, and there is one."""
    members = [each if isinstance(each, tuple) else () for each in texts]
    return bool(texts) and all(each and all(isinstance(m, str) for m in each) for each in members)


def is_one_text(text: Any) -> bool:
    """Whether this is one text: anything but a list, or a list of token ids or of messages."""
    if not isinstance(text, list) or is_conversation(text):
        return True
    return bool(text) and all(issubclass(kind, int) for kind in set(map(type, text)))


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
    if facts.sound_argument is not None:
        return encode_sound(facts, text)
    talk = Conversation.of(text) if is_conversation(text) else None
    if talk and talk.pictures:
        see = encode_with_pictures if facts.picture_argument is None else encode_across
        return _by_message(facts, see(facts, talk, request), talk)
    if facts.picture_argument is not None:
        return encode_across(facts, text, request)
    if has_pictures(text):
        return encode_with_pictures(facts, text, request)
    conversation = conversation_of(text, request.chat)
    if conversation is not None:
        return encode_chat(facts.tokenizer, conversation, facts.max_tokens, request.truncate)
    if facts.reads_two_texts and not isinstance(text, tuple):
        raise UsageError(_two_texts(facts))
    return encode(facts.tokenizer, text, _names(facts), facts.max_tokens, request.truncate)


def _two_texts(facts: ModelFacts) -> str:
    if getattr(facts.config, "reads", "question") == "question":
        return "this model answers questions: give a pair (question, context)"
    return "this model reads two texts: give a pair (text, other text)"


def are_alike(facts: ModelFacts, texts: Sequence[Any], requests: Sequence[Request]) -> bool:
    """Whether one call of the tokenizer encodes all these texts: strings alone, or pairs alone."""
    name = facts.task.name if facts.task else ""
    if name == "sequence to sequence" or (not name and facts.has_decoder):
        return False
    if name == "causal lm" and any(map(names_tokens, requests)):
        return False
    if len(texts) < 2 or not facts.tokenizer.is_fast or any(each.chat for each in requests):
        return False
    strings = name != "question answering" and all(isinstance(each, str) for each in texts)
    return strings or are_pairs(texts)


def encode_alike(
    facts: ModelFacts, texts: Sequence[Any], requests: Sequence[Request]
) -> list[tuple[list[int], Inputs]]:
    """Encode such texts as batches of equal length, each with the places of its texts."""
    limits = facts.max_tokens, [each.truncate for each in requests]
    encoded = encode_all(facts.tokenizer, texts, _names(facts), *limits)
    groups: dict[int, list[int]] = {}
    for place, each in enumerate(encoded):
        groups.setdefault(len(each.tokens), []).append(place)
    return [
        (group, as_batch(facts, [encoded[i] for i in group], [texts[i] for i in group]))
        for group in groups.values()
    ]


def _names(facts: ModelFacts) -> tuple[str, str, str]:
    """The names of the segments: that of a single text, and the two of a pair."""
    answers = facts.task is not None and facts.task.name == "question answering"
    return ("text", "question", "context") if answers else SEGMENTS


def encode_chat(
    tokenizer: Any, conversation: Conversation, limit: int, truncate: bool = False
) -> Encoded:
    """Tokenize a conversation; the tokens that the template adds are special ones."""
    chat = write_chat(tokenizer, conversation)
    found = tokenizer(chat.text, add_special_tokens=False, return_offsets_mapping=tokenizer.is_fast)
    arguments = dict(found)
    ids = arguments["input_ids"]
    plain = (False,) * len(ids)
    places = arguments.pop("offset_mapping", None)
    if places is None:
        places = offsets_by_decoding(tokenizer, ids, plain, chat.text)
    if any(place is None for place in places):
        places = [(0, 0)] * len(ids)
        chat = WrittenChat(chat.text, (ChatPart(0, len(chat.text), WHOLE, True),), (NO_PLACES,))
    special = mark_special(tokenizer, ids, plain)
    tokens = _tokens(tokenizer.convert_ids_to_tokens(ids), special, places, chat)
    if all(tokens.special):
        raise UsageError("the tokenizer leaves nothing of the messages")
    encoded = Encoded(tokens, arguments, chat.notes, chat.text, tokens.special)
    return fit(encoded, limit, truncate)


def _tokens(
    texts: list[str], special: tuple[bool, ...], places: list[Span], chat: WrittenChat
) -> Tokens:
    parts = [chat.part_of(*place) for place in places]
    said = {
        name: (
            min(each.start for each in chat.parts if each.said and each.segment == name),
            max(each.stop for each in chat.parts if each.said and each.segment == name),
        )
        for name in dict.fromkeys(each.segment for each in chat.parts if each.said)
    }
    marks = tuple(mark or not part.said for mark, part in zip(special, parts, strict=True))
    offsets = tuple(
        None if mark else _within(place, said[part.segment])
        for mark, part, place in zip(marks, parts, places, strict=True)
    )
    sources = {name: chat.text[slice(*span)] for name, span in said.items()}
    return Tokens(tuple(texts), offsets, marks, tuple(each.segment for each in parts), sources)


def _by_message(facts: ModelFacts, encoded: Encoded, talk: Conversation) -> Encoded:
    """Tell the messages of a conversation with pictures apart, in the text that was decoded.

    What was said is found by how often the same words occur before it.
    """
    chat = write_chat(facts.processor, talk)
    text, spans = encoded.tokens.sources["text"], {}
    for part in (each for each in chat.parts if each.said):
        said, before = chat.text[part.start : part.stop].strip(), chat.text[: part.start]
        for mark in facts.tokenizer.all_special_tokens:
            before = before.replace(mark, "")
        places = [found.start() for found in re.finditer(re.escape(said), text)] if said else []
        start = dict(enumerate(places)).get(before.count(said), -1)
        spans[part.segment] = (start, start + len(said))
    if NOT_APART in chat.notes or any(start < 0 for start, _ in spans.values()):
        return replace(encoded, notes=(*encoded.notes, NOT_APART))
    tokens = _told_apart(encoded.tokens, spans, chat.parts[-1].segment)
    return replace(encoded, tokens=tokens, notes=(*encoded.notes, *chat.notes))


def _told_apart(tokens: Tokens, spans: Mapping[str, Span], answer: str) -> Tokens:
    """The tokens of a text, each in the message whose span it touches, or else comes before."""
    segments, offsets, marks = list(tokens.segments), list(tokens.offsets), list(tokens.special)
    latest = 0
    for number, offset in enumerate(tokens.offsets):
        if tokens.segments[number] != "text":
            continue
        latest = latest if offset is None else offset[0]
        own = [name for name, span in spans.items() if offset and overlap(span, offset)]
        later = [name for name, (_, stop) in spans.items() if stop > latest]
        segments[number] = (own or later or [answer])[0]
        marks[number] = marks[number] or not own
        offsets[number] = _within(offset, spans[own[0]]) if own and offset else None
    sources = {name: tokens.sources["text"][slice(*span)] for name, span in spans.items()}
    return replace(
        tokens,
        offsets=tuple(offsets),
        special=tuple(marks),
        segments=tuple(segments),
        sources=sources,
    )


def _within(place: Span, span: Span) -> Span:
    """The place of a token counted from the start of what was said, and cut to it."""
    start, stop = span
    return max(place[0], start) - start, min(max(place[1], start), stop) - start

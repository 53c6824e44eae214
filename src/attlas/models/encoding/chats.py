"""Encoding a conversation: one text by the tokenizer's template, one segment for each message."""

from typing import Any

from attlas.data.conversations import Conversation
from attlas.errors import UsageError
from attlas.models.encoding.chat_parts import WHOLE, ChatPart, WrittenChat, write_chat
from attlas.models.encoding.encode import Encoded, fit, mark_special, offsets_by_decoding
from attlas.tokens import Span, Tokens

NO_PLACES = "this tokenizer gives no places of its tokens, so the messages are not told apart"


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


def _within(place: Span, span: Span) -> Span:
    """The place of a token counted from the start of what was said, and cut to it."""
    start, stop = span
    return max(place[0], start) - start, min(max(place[1], start), stop) - start

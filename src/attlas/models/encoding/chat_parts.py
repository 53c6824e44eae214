"""Chats: a conversation as the tokenizer's template writes it, and which part is whose.

A template is a program, so what it adds is found by running it again with marks in place of the
contents: the text between the marks is markup.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from attlas.data.conversations import Conversation, is_conversation, said_in
from attlas.errors import UsageError

# Of a private range, so that no template looks for them and no text contains them.
_START, _STOP = "\ue000", "\ue001"
_MARK = re.compile(f"{_START}(\\d+){_STOP}")
SYSTEM = ("system", "developer")
TOOLS = "tools"  # the segment of what a template writes because of tools
WHOLE = "chat"  # the segment of a chat whose messages cannot be told apart
NOT_APART = "the chat template rewrites the messages, so they are not told apart"


@dataclass(frozen=True)
class ChatPart:
    """A stretch of a written chat: whose it is, and whether it is said or only markup."""

    start: int
    stop: int
    segment: str
    said: bool


@dataclass(frozen=True)
class WrittenChat:
    """A chat as one text, its parts from start to end, and what a reader must know of it."""

    text: str
    parts: tuple[ChatPart, ...]
    notes: tuple[str, ...] = ()

    def part_of(self, start: int, stop: int) -> ChatPart:
        """The part that a token belongs to: of those said, the first that it touches."""
        touched = [each for each in self.parts if each.start < stop and start < each.stop]
        said = [each for each in touched if each.said]
        behind = [each for each in self.parts if each.start <= start]
        return (said or touched or behind[-1:] or list(self.parts))[0]


@dataclass(frozen=True)
class _Numbered:
    """A message with its number among those of the user; 0 is one that the template adds."""

    number: int
    message: Mapping[str, Any]

    @property
    def segment(self) -> str:
        return f"{self.number} {self.message['role']}"

    def marked(self) -> dict[str, Any]:
        mark: Any = f"{_START}{self.number}{_STOP}"
        if isinstance(self.message.get("content"), list):
            seen = [{"type": "image"}] * len(Conversation((self.message,)).pictures)
            mark = [*seen, {"type": "text", "text": mark}]
        return {"role": self.message["role"], "content": mark}

    def pattern(self, exactly: bool) -> str:
        """What stands in place of the mark: the content, perhaps without spaces around it."""
        content = said_in(self.message)
        if self.number == 0:
            return ".+?"
        if not exactly or self.message.get("tool_calls"):
            return ".*?"
        return f"(?:{re.escape(content)}|{re.escape(content.strip())})"


@dataclass(frozen=True)
class _Frame:
    """What a template writes around some messages, in their order: one piece more than there are.

    `ends` says where, in the piece behind each message, its own markup ends.
    """

    messages: tuple[_Numbered, ...]
    pieces: tuple[str, ...]
    ends: tuple[int, ...]


def conversation_of(text: Any, chat: bool) -> Conversation | None:
    """The conversation that a text is; `chat` makes a plain text the message of a user."""
    if is_conversation(text):
        return Conversation.of(text)
    if not chat:
        return None
    if not isinstance(text, str):
        raise UsageError(f"a chat message is a string, not {type(text).__name__}")
    return Conversation(({"role": "user", "content": text},))


def chat_text(tokenizer: Any, text: Any, chat: bool) -> str | None:
    """What the template writes of a conversation; None for a text that is none."""
    conversation = conversation_of(text, chat)
    return None if conversation is None else render(tokenizer, conversation)


def write_chat(tokenizer: Any, conversation: Conversation) -> WrittenChat:
    """Write a conversation by the tokenizer's template, up to where the model is to answer."""
    text = render(tokenizer, conversation)
    given = [_Numbered(i, each) for i, each in enumerate(conversation.messages, 1)]
    own = _Numbered(0, {"role": "system", "content": ""})

    def write(messages: Sequence[_Numbered], whole: bool = True, tools: bool = True) -> str | None:
        told = conversation if tools else Conversation(conversation.messages)
        try:
            return render(tokenizer, told.with_messages([m.marked() for m in messages]), whole)
        except UsageError:  # a template may want other messages than these
            return None

    tries = [(given, True, True), (given, False, True)]
    if given[0].message["role"] not in SYSTEM:  # the template may have one of its own
        tries.insert(0, ([own, *given], True, True))
        if conversation.tools:  # or one for the tools alone
            tries.insert(1, ([own, *given], True, False))
    for messages, exactly, tools in tries:
        frame = _frame(messages, partial(write, tools=tools))
        found = frame and _spans(frame, text, exactly)
        if frame and found:
            added = _tools(frame, messages, write) if conversation.tools and tools else {}
            parts = _parts(frame, found, added)
            if not tools:
                parts = tuple(
                    replace(each, segment=TOOLS) if each.start == found[0][0] else each
                    for each in parts
                )
            notes = (*_left_out(given, frame), *_tools_left_out(parts, conversation))
            return WrittenChat(text, parts, notes)
    return WrittenChat(text, (ChatPart(0, len(text), WHOLE, True),), (NOT_APART,))


def render(tokenizer: Any, conversation: Conversation, whole: bool = True) -> str:
    """What the template writes; `whole` adds where the model is to answer.

    The last message is continued if it is the model's own.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError("this tokenizer has no chat template")
    last = conversation.messages[-1]
    continues = last["role"] == "assistant" and bool(last.get("content"))
    try:
        written: str = tokenizer.apply_chat_template(
            [_without_pixels(each) for each in conversation.messages],
            tools=list(conversation.tools) or None,
            tokenize=False,
            add_generation_prompt=whole and not continues,
            continue_final_message=whole and continues,
        )
    except Exception as problem:  # a template is a program and may raise anything
        why = " ".join(str(problem).split()) or type(problem).__name__
        raise UsageError(f"the chat template does not take this conversation: {why}") from problem
    return written


def _without_pixels(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message for a template, which writes a mark for each picture."""
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    parts = [part if part["type"] == "text" else {"type": "image"} for part in content]
    return {**message, "content": parts}


_Write = Callable[..., str | None]


def _frame(messages: Sequence[_Numbered], write: _Write) -> _Frame | None:
    marked = write(messages)
    if marked is None:
        return None
    pieces = _MARK.split(marked)
    numbers = [int(number) for number in pieces[1::2]]
    known = {each.number: each for each in messages}
    kept = tuple(known[number] for number in numbers)
    all_there = len(kept) == len(messages) or messages[0].number != 0
    if not kept or len(set(numbers)) < len(numbers) or not all_there:
        return None
    places = [match.end() for match in _MARK.finditer(marked)]
    ends = []
    for each, place in zip(kept, places, strict=True):
        alone = write(messages[: messages.index(each) + 1], whole=False)
        fits = alone is not None and marked.startswith(alone) and len(alone) >= place
        ends.append(len(alone) - place if fits and alone is not None else 0)
    limits = [len(piece) for piece in pieces[2::2]]
    return _Frame(kept, tuple(pieces[::2]), tuple(map(min, ends, limits)))


def _spans(frame: _Frame, text: str, exactly: bool) -> list[tuple[int, int]] | None:
    """Where the content of each message stands in the text."""
    first, *others = map(re.escape, frame.pieces)
    said = [f"({each.pattern(exactly)})" for each in frame.messages]
    pattern = first + "".join(a + b for a, b in zip(said, others, strict=True))
    found = re.fullmatch(pattern, text, re.DOTALL)
    return found and [found.span(i) for i in range(1, len(said) + 1)]


def _tools(
    frame: _Frame, messages: Sequence[_Numbered], write: _Write
) -> dict[int, tuple[int, int]]:
    """The stretch of each piece that is there because of the tools."""
    without = write(messages, tools=False)
    others = _MARK.split(without)[::2] if without is not None else []
    if len(others) != len(frame.pieces):
        return {}
    found = {}
    for place, (piece, other) in enumerate(zip(frame.pieces, others, strict=True)):
        start = _same(piece, other)
        same = _same(piece[start:][::-1], other[start:][::-1])
        if len(piece) - same > start:
            found[place] = (start, len(piece) - same)
    return dict(list(found.items())[:1])


def _same(one: str, other: str) -> int:
    """How many signs two texts share at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _parts(
    frame: _Frame, spans: Sequence[tuple[int, int]], tools: Mapping[int, tuple[int, int]]
) -> tuple[ChatPart, ...]:
    """The parts of the text, from start to end."""
    answer = f"{max(each.number for each in frame.messages) + 1} assistant"
    segments = [each.segment for each in frame.messages]
    parts: list[ChatPart] = []
    start = 0
    for place, piece in enumerate(frame.pieces):
        before = segments[place - 1] if place else segments[0]
        after = segments[place] if place < len(segments) else answer
        end = frame.ends[place - 1] if place else 0
        cuts = sorted({0, end, len(piece), *tools.get(place, ())})
        for low, high in pairwise(cuts):
            of_tools = place in tools and tools[place][0] <= low < tools[place][1]
            segment = TOOLS if of_tools else before if low < end else after
            parts.append(ChatPart(start + low, start + high, segment, of_tools))
        if place < len(spans):
            parts.append(ChatPart(*spans[place], segments[place], True))
            start = spans[place][1]
    return tuple(each for each in parts if each.start < each.stop)


def _tools_left_out(parts: Sequence[ChatPart], conversation: Conversation) -> tuple[str, ...]:
    is_there = not conversation.tools or any(each.segment == TOOLS for each in parts)
    return () if is_there else ("the chat template leaves out the tools",)


def _left_out(given: Sequence[_Numbered], frame: _Frame) -> tuple[str, ...]:
    return tuple(
        f"the chat template leaves out message {each.number}, of the role {each.message['role']}"
        for each in given
        if each not in frame.messages
    )

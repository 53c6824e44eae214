"""Conversations: messages with a role and a content, and the tools that they may call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from attlas.errors import UsageError

ALLOWED = "a message has a role and a content: {'role': 'user', 'content': 'Hello'}"


@dataclass(frozen=True)
class Conversation:
    """Messages in their order, and descriptions of tools; both as a chat template takes them."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Any, ...] = ()

    @classmethod
    def of(cls, given: Any) -> "Conversation":
        """Read a list of messages, or a record with `messages` and perhaps `tools`."""
        record = given if isinstance(given, Mapping) else {"messages": given}
        unknown = sorted(set(record) - {"messages", "tools"})
        if unknown:
            raise UsageError(f"a conversation has messages and tools, not {unknown[0]!r}")
        messages, tools = record["messages"], record.get("tools") or ()
        if not isinstance(tools, (list, tuple)):
            raise UsageError(f"tools are a list, not {type(tools).__name__}")
        return cls(tuple(_read_message(each) for each in messages), tuple(tools))

    @property
    def pictures(self) -> list[Any]:
        """The pictures in all messages, in their order: paths, or what a model takes as such."""
        contents = [each["content"] for each in self.messages if "content" in each]
        parts = [part for each in contents if isinstance(each, list) for part in each]
        return [part["image"] for part in parts if part["type"] == "image"]

    def with_messages(self, messages: Sequence[Mapping[str, Any]]) -> "Conversation":
        """The same tools with other messages."""
        return replace(self, messages=tuple(messages))


def is_conversation(given: Any) -> bool:
    """Whether this is one conversation: a list of messages, or a record that holds one."""
    messages = given.get("messages") if isinstance(given, Mapping) else given
    return (
        isinstance(messages, (list, tuple))
        and len(messages) > 0
        and all(isinstance(each, Mapping) and "role" in each for each in messages)
    )


def _read_message(message: Any) -> Mapping[str, Any]:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise UsageError(f"{ALLOWED}, not {message!r}")
    content = message.get("content")
    if content is None and message.get("tool_calls"):
        return dict(message)
    if isinstance(content, (list, tuple)) and any(map(_is_picture, content)):
        return {**message, "content": [_read_part(part) for part in content]}
    if isinstance(content, (list, tuple)):
        return {**message, "content": "".join(_read_text(part) for part in content)}
    if not isinstance(content, str):
        raise UsageError(f"{ALLOWED}, a text; not {message!r}")
    return dict(message)


def _is_picture(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image"


def _read_part(part: Any) -> dict[str, Any]:
    if not _is_picture(part):
        return {"type": "text", "text": _read_text(part)}
    if part.get("image") is None:
        raise UsageError(
            "a picture in a message is {'type': 'image', 'image': a path or a picture}"
        )
    return {"type": "image", "image": part["image"]}


def said_in(message: Mapping[str, Any]) -> str:
    """What a message says, without its pictures."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def without_pictures(given: Any) -> Any:
    """A conversation for a file: a path stays, and any other picture becomes a name of its own."""
    numbers = count(1)
    return _with_each_picture(
        given, lambda seen: seen if isinstance(seen, str) else f"image_{next(numbers)}"
    )


def place_pictures(given: Any, folder: str) -> Any:
    """A conversation from a file, with the paths of its pictures counted from a folder."""
    return _with_each_picture(given, lambda path: str(Path(folder) / str(path)))


def _with_each_picture(part: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(part, (list, tuple)):
        return [_with_each_picture(each, change) for each in part]
    if not isinstance(part, Mapping):
        return part
    if _is_picture(part):
        return {**part, "image": change(part["image"])}
    return {name: _with_each_picture(each, change) for name, each in part.items()}


def _read_text(part: Any) -> str:
    """The text of one part of a content that is given in parts."""
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type", part) if isinstance(part, Mapping) else part
    raise UsageError(f"the parts of a message are texts here, not {kind!r}")

"""Reading what a user hands to a command: a text, a chat, a picture, a sound."""

import json
import sys
from pathlib import Path
from typing import Any

from attlas.errors import UsageError


def read_stdin() -> str:
    """The text of standard input."""
    try:
        return sys.stdin.buffer.read().decode("utf-8").strip("\n")
    except UnicodeDecodeError as problem:
        raise UsageError(f"standard input is not UTF-8: {problem.reason}") from problem


def read_messages(name: str) -> Any:
    """The chat of a JSON file, or of standard input."""
    from attlas.data.conversations import Conversation, is_conversation, place_pictures

    try:
        read = json.loads(read_stdin() if name == "-" else Path(name).read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"the messages {name} cannot be read as JSON: {problem}") from problem
    if not is_conversation(read):
        asked = '[{"role": "user", "content": "Hello"}], or {"messages": […], "tools": […]}'
        raise UsageError(f"{name} holds no conversation: write {asked}")
    Conversation.of(read)
    return place_pictures(read, str(Path() if name == "-" else Path(name).parent))


def read_image(path: Path) -> Any:
    """The picture of a file."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as problem:
        raise UsageError(f"the picture {path} cannot be read: {problem}") from problem


def read_sound(path: Path) -> Any:
    """The samples of a WAV file, and their rate."""
    import wave

    import numpy as np

    try:
        with wave.open(str(path), "rb") as sound:
            width, channels, rate = sound.getsampwidth(), sound.getnchannels(), sound.getframerate()
            heard = sound.readframes(sound.getnframes())
    except (OSError, EOFError, wave.Error) as problem:
        raise UsageError(f"the sound {path} cannot be read as WAV: {problem}") from problem
    if width not in (2, 4):
        raise UsageError(f"the sound {path} has {8 * width} bits a sample: 16 or 32 can be read")
    samples = np.frombuffer(heard, f"<i{width}").reshape(-1, channels).mean(axis=1)
    return samples / 2.0 ** (8 * width - 1), rate

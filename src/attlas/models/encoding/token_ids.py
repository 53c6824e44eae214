"""The token ids of what is wanted of a language model: a number, a token, a string of several."""

from numbers import Integral
from typing import Any

from attlas.errors import UsageError
from attlas.tokens import Tokens


def is_number(wanted: Any) -> bool:
    """Whether this is a whole number, numpy's too; True and False are none."""
    return isinstance(wanted, Integral) and not isinstance(wanted, bool)


def token_ids(tokenizer: Any, wanted: Any, written: bool = False) -> list[int]:
    """The ids of a target: a number, a token as the tokenizer writes it, or a string.

    `written` asks for the ids that a decoder writes, where they are not those that it reads.
    """
    if is_number(wanted):
        if not 0 <= wanted < len(tokenizer):
            raise UsageError(f"unknown token id {wanted}: there are 0 to {len(tokenizer) - 1}")
        return [int(wanted)]
    if not isinstance(wanted, str) or not wanted:
        raise UsageError(f"a target is a string or a token id, not {wanted!r}")
    given = {"text_target" if written else "text": wanted}
    return _own_token(tokenizer, wanted, tokenizer(**given, add_special_tokens=False)["input_ids"])


def following_ids(tokenizer: Any, prompt: Tokens, wanted: Any, plain: bool) -> list[int]:
    """The ids of a target as they follow a prompt, which may differ from those it has alone.

    A `plain` prompt holds its special tokens already.
    """
    text = prompt.sources.get("text")
    if isinstance(wanted, str) and wanted and text is not None:
        before = tokenizer.convert_tokens_to_ids(list(prompt.texts))
        alone = tokenizer(text, add_special_tokens=not plain)["input_ids"]
        whole = tokenizer(text + wanted, add_special_tokens=not plain)["input_ids"]
        # A prompt that was cut, or that ends in a special token, is not what the target follows.
        if alone == before and len(whole) > len(before) and whole[: len(before)] == before:
            return _own_token(tokenizer, wanted, whole[len(before) :])
    return token_ids(tokenizer, wanted)


def _own_token(tokenizer: Any, wanted: str, ids: list[int]) -> list[int]:
    known: dict[str, int] = tokenizer.get_vocab()
    return [known[wanted]] if len(ids) != 1 and wanted in known else list(ids)

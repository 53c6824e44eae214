"""What a reader in a hurry needs: the answer in everyday words, and what to do with it.

Each step is a sentence, with the commands to type.
"""

from collections.abc import Callable, Mapping
from shlex import quote

from attlas.auditing.verdict.rules import WeightsTest, is_unused

NO_MAPS = "Do not show heat maps of the weights alone."
REST = "the words that the model's answers rest on"
BRING = "Bring about"
UNTIL_THEN = "Until then, show no heat map of the weights."


def next_step(test: WeightsTest) -> str:
    """What to do with the answer; what stands between backticks is a command."""
    if test.word == "supported":
        return (
            f"On texts like these, {test.method} may be read as a map of where the prediction "
            f"rests: {_explain(test, test.method)}. Do not read it as a map of which way a token "
            f"pulls. {_licence(test)}"
        )
    if test.word == "too few texts":
        return _more_texts(test)
    if not is_unused(test.used, test.rules) and len(test.removals("against")) == len(test.tested):
        flat = [each.is_flat(test.rules) for each in test.tested.values()]
        if all(flat):
            return "Show no heat map of single words here, whichever method drew it."
    return f"{_instead(test)} {_licence(test)}"


def _instead(test: WeightsTest) -> str:
    better = _better(test)
    if better is None and test.depends_on_reading():
        command = _explain(test, test.method)
        return f"{_read_by_method(test)}, which finds what they miss: {command}."
    if better is None:
        return NO_MAPS
    return f"{NO_MAPS} Use {better} instead, which finds more: {_explain(test, better)}."


def _licence(test: WeightsTest) -> str:
    command = _explain(test, test.method, "--licence")
    return f"To see whether a map of the weights holds for one text: {command}."


def _explain(test: WeightsTest, method: str, *options: str) -> str:
    """The command that explains a text by a method; its name may say from which baseline."""
    name, _, baseline = method.partition(" from ")
    words = ["attlas explain", *options, f"--method {name}"]
    words += [f"--option baseline={baseline}"] if baseline else []
    words += [f"--model {quote(test.model)}"] if test.model else []
    return f"`{' '.join([*words, 'TEXT'])}`"


def _read_by_method(test: WeightsTest) -> str:
    return f"Do not show the weights as they are: show {test.method}"


def _more_texts(test: WeightsTest) -> str:
    if test.waits_for_plain_weights():
        return _until_plain_weights_are_known(test)
    if test.needed is None:
        return f"{_instead(test)} More texts like these would not settle it. {_licence(test)}"
    if test.is_ruled_out() and _better(test):
        needed = f"About {test.needed:,} texts in all would tell how far the weights can be read."
        return f"{_instead(test)} {needed}"
    missing = max(test.needed - test.texts, 1)
    return (
        f"{BRING} {missing:,} more texts: about {test.needed:,} in all are likely to settle "
        f"it. {UNTIL_THEN}"
    )


def with_command(step: str, command: str) -> str:
    """The step with this command for its request for more texts, or after it."""
    asked, _, rest = step.partition(". ")
    command = f"{command.removesuffix('.')}."
    return f"{command} {rest}" if asked.startswith(BRING) else f"{step} {command}"


def _until_plain_weights_are_known(test: WeightsTest) -> str:
    shown = f"{_read_by_method(test)}: {_explain(test, test.method)}."
    if test.needed is None:
        return f"{shown} More texts like these would not tell whether they would do as they are."
    missing = max(test.needed - test.texts, 1)
    return (
        f"{BRING} {missing:,} more texts: about {test.needed:,} in all are likely to tell "
        f"whether the weights do as they are. Until then: {shown[0].lower()}{shown[1:]}"
    )


def _better(test: WeightsTest) -> str | None:
    """What finds surely more than the weights: a reference, or a reading that finds still more."""
    behind = {
        removal: -each.less_reference.mean
        for removal, each in test.tested.items()
        if each.less_reference is not None and each.less_reference.high < 0
    }
    reading = max(test.gains, key=lambda name: test.gains[name], default=None)
    if reading is not None and test.gains[reading] > max(behind.values(), default=0.0):
        return reading
    return next((test.references[removal] for removal in behind), None)


def in_everyday_words(test: WeightsTest) -> str:
    """The answer to "where": a few words, then why."""
    return _ANSWERS[test.word](test)


def _answer_yes(_: WeightsTest) -> str:
    return (
        f"Yes, to see which words count. The words that attention marks are {REST}. Whether such a "
        "word speaks for an answer or against it, attention does not tell."
    )


def _answer_no(test: WeightsTest) -> str:
    own, rules = test.tested.values(), test.rules
    if is_unused(test.used, rules):
        return (
            "No. The model's answers hardly depend on its attention, so attention cannot "
            "explain them."
        )
    if all(each.is_flat(rules) for each in own):
        return (
            "No. No single word decides the model's answers on these texts, so there is nothing "
            "that a heat map could point at."
        )
    if any(each.s.high < rules.floor for each in own):
        return f"No. The words that attention marks are mostly not {REST}."
    return f"No. Attention marks {REST} no better than a simple rule does."


def _answer_partly(test: WeightsTest) -> str:
    start = f"Only in part. Attention marks many of {REST}, but"
    own = test.tested.values()
    if test.depends_on_reading():
        return (
            f"{start} only after further calculation ({test.method}). Taken as it is, it misses "
            "most of them."
        )
    if test.removals("against") or test.removals("open"):
        return f"{start} not by every way of testing it."
    surely = any(each.less_reference and each.less_reference.high < 0 for each in own)
    return f"{start} another method {'finds' if surely else 'may find'} more of them."


def _answer_open(test: WeightsTest) -> str:
    if test.waits_for_plain_weights():
        return _answer_open_as_it_is(test)
    if test.needed is None:
        return (
            f"It cannot be told. These texts do not settle whether attention marks {REST}, and "
            "more texts like them would not either."
        )
    if test.is_ruled_out():
        return (
            f"Not fully; how far cannot be told yet. {test.texts:,} texts are too few to say "
            f"whether attention marks many of {REST}, or no more than a simple rule does."
        )
    return (
        f"It cannot be told yet. {test.texts:,} texts are too few to say whether attention marks "
        f"{REST}."
    )


def _answer_open_as_it_is(test: WeightsTest) -> str:
    sure = f"in full. Attention marks {REST} after further calculation ({test.method});"
    if test.needed is None:
        return (
            f"It cannot be told {sure} whether it does taken as it is, these texts do not settle, "
            "and more texts like them would not either."
        )
    return (
        f"It cannot yet be told {sure} {test.texts:,} texts are too few to say whether it does "
        "taken as it is."
    )


_ANSWERS: Mapping[str, Callable[[WeightsTest], str]] = {
    "supported": _answer_yes,
    "not supported": _answer_no,
    "partly": _answer_partly,
    "too few texts": _answer_open,
}

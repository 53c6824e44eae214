"""What to do with a verdict: sentences, each a step, with the commands to type."""

from shlex import quote

from attlas.auditing.verdict.rules import WeightsTest, is_unused

NO_MAPS = "Do not show heat maps of the weights alone."
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
        return (
            f"Do not show the weights as they are: show {test.method}, which finds what they "
            f"miss: {_explain(test, test.method)}."
        )
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


def _more_texts(test: WeightsTest) -> str:
    if test.needed is None:
        return f"{_instead(test)} More texts like these would not settle it. {_licence(test)}"
    if test.is_ruled_out() and _better(test):
        needed = f"About {test.needed:,} texts in all would tell how far the weights can be read."
        return f"{_instead(test)} {needed}"
    missing = max(test.needed - test.texts, 1)
    return (
        f"Bring about {missing:,} more texts: about {test.needed:,} in all are likely to settle "
        f"it. {UNTIL_THEN}"
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

"""The target that a result explains, and the origin that says how it was computed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from attlas.results.support.files import plain
from attlas.results.support.words import Unit
from attlas.views.units import ordinal, visible

ENCODED = "Inputs"  # stands for a text that was given as a model's arguments
SAMPLES = "Samples"  # stands for a sound
_NAMED = r"'(image_\d+)'"  # a picture in a message
_CLASS = r"[A-Z]\w*(Model|For[A-Z]\w*)"  # stands for a model that was made in memory
_FILLED = {
    "image": "the picture",
    "inputs": "what the processor made",
    "sound": "samples, sampling rate",
}


@dataclass(frozen=True)
class TargetRecord:
    """What was explained: its name, and the quantity that the method used with its value."""

    name: str
    quantity: str  # logit, probability, log-probability or value
    value: float
    contrast: str | None = None
    position: int | None = None  # the token it was read at, if the model has an output at each


def mean_target(name: str, targets: Sequence[TargetRecord]) -> TargetRecord:
    """The target of the mean of several explanations: the mean of their values."""
    contrasts = {target.contrast for target in targets}
    return TargetRecord(
        name,
        " and ".join(dict.fromkeys(target.quantity for target in targets)),
        sum(target.value for target in targets) / len(targets),
        contrasts.pop() if len(contrasts) == 1 else None,
    )


def why(
    target: TargetRecord, prediction: Sequence[Mapping[str, Any]], words: Sequence[Unit]
) -> str:
    """The question that a result answers, for the headline of its page."""
    name = visible(target.name.strip() or target.name)
    if target.quantity == "value":
        name = f"{name} {target.value:.3f}".replace(" -", " −")
    read_at = [unit for unit in words if target.position in unit.positions]
    if read_at:
        name = f"{name} at {_quoted(read_at[0], words)}"
    if target.contrast:
        name = f"{name} rather than {target.contrast}"
    is_predicted = not prediction or prediction[0].get("label") == target.name
    return f"Why {name}?" if is_predicted else f"What speaks for {name}?"


def _quoted(unit: Unit, words: Sequence[Unit]) -> str:
    """A word, and which one it is if it occurs more than once."""
    same = [each.positions for each in words if each.text == unit.text]
    which = f" ({ordinal(same.index(unit.positions) + 1)})" if len(same) > 1 else ""
    return f"“{unit.text}”{which}"


@dataclass(frozen=True)
class Origin:
    """How a result was computed, in enough detail to compute it again.

    `asked` holds the arguments of the call. `options` and `asked` hold only what JSON can hold,
    except that a pair of texts is a tuple of two.
    """

    model: str
    task: str
    method: str
    signed: bool
    paper: str = ""
    reading: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    verb: str = "explain"
    part: str = ""  # calls on what the verb returned: `.row(3)`
    takes_sides: bool = True  # whether what is below zero speaks against the target

    def __post_init__(self) -> None:
        text, asked = self.asked.get("text"), plain(self.asked)
        if isinstance(text, tuple):
            asked["text"] = text
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "options", plain(self.options))

    def about(self, text: Any) -> "Origin":
        """The origin of the same call about this text, its first argument."""
        return replace(self, asked={"text": text, **self.asked})

    def to_dict(self) -> dict[str, Any]:
        """The origin as JSON; a pair of texts is `{"pair": [one, other]}`, for a list is words."""
        record = asdict(self)
        if self.takes_sides:  # as most do: files are those of earlier versions
            del record["takes_sides"]
        if isinstance(self.asked.get("text"), tuple):
            record["asked"]["text"] = {"pair": list(self.asked["text"])}
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Origin":
        """Read what `to_dict` returned."""
        asked = dict(record["asked"])
        if isinstance(asked.get("text"), dict) and "pair" in asked["text"]:
            asked["text"] = tuple(asked["text"]["pair"])
        return cls(**{**record, "asked": asked})

    def followed_by(self, call: str) -> "Origin":
        """The origin of what a further call on the result returns: `.row(3)`."""
        return replace(self, part=self.part + call)

    @property
    def shows_sides(self) -> bool:
        """Whether views have colours for and against the target."""
        return self.signed and self.takes_sides

    def view_facts(self) -> dict[str, Any]:
        """The fields that views show."""
        names = ("model", "task", "method", "paper", "reading", "options", "versions")
        record = asdict(self)
        return {"signed": self.shows_sides, **{name: record[name] for name in names}}

    def code(self, *, picture: bool) -> str:
        """The Python lines that compute the result again; you must fill in a picture yourself."""
        if self.verb == "from_elsewhere":
            made = f"explanation = ...  # what {self.method} returned"
            return f"import attlas\n{made}\nattlas.from_elsewhere(explanation){self.part}"
        given = {**self.asked, "method": self.method, **self.options}
        if self.method == self.verb:  # verbs such as `tree` take no method
            del given["method"]
        text = given.pop("text", "…")
        options = "".join(f", {key}={value!r}" for key, value in given.items() if value is not None)
        lines = ["import attlas", subject_line(self.model)]
        shown, chosen = repr(text), ""
        if picture:
            names = _picture_names(text)
            lines += [f"{name} = ...  # {_FILLED.get(name, 'a picture')}" for name in names]
            shown = names[0] if names else shown
            if isinstance(text, (list, dict)):
                shown = re.sub(_NAMED, r"\1", repr(text))
            if isinstance(text, tuple):
                shown = f"({', '.join([*names, repr(text[-1])])})"
        elif isinstance(text, list) and text and isinstance(text[0], (str, list)):
            # A list of words counts as one text only within a list of texts.
            shown, chosen = repr([text] if isinstance(text[0], str) else text), "[0]"
        lines.append(f"attlas.{self.verb}(subject, {shown}{options}){chosen}{self.part}")
        return "\n".join(lines)


def subject_line(model: str) -> str:
    """The line of Python that makes the subject; a model from memory you must fill in yourself."""
    if re.fullmatch(_CLASS, model):
        return f"subject = attlas.Subject(model, tokenizer)  # your {model}"
    return f"subject = attlas.load({model!r})"


def _picture_names(text: Any) -> list[str]:
    """The names of the pictures of a text in its code, or of what a processor made of both."""
    if text in (ENCODED, SAMPLES):
        return ["inputs" if text == ENCODED else "sound"]
    if isinstance(text, (list, dict)):  # of messages
        return re.findall(_NAMED, repr(text))
    count = len(text) - 1 if isinstance(text, tuple) else 1
    return ["image"] if count == 1 else [f"image_{number + 1}" for number in range(count)]

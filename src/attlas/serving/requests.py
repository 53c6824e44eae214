"""What a request may hold: every field, its type and its bounds.

The same classes check the requests and make the description at /openapi.json.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_TOKENS = 100_000  # a number of a token, a row or a column
MOST_EDITS = 256
MOST_SETS = 256

Number = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Numbers = Annotated[tuple[Number, ...], Field(min_length=1, max_length=4096)]
Key = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Field(max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Weight = Annotated[float, Field(ge=-1000, le=1000)]
Row = Annotated[tuple[Weight, ...], Field(min_length=1, max_length=4096)]
Rows = Annotated[tuple[Row, ...], Field(min_length=1, max_length=4096)]
HeadRows = Annotated[tuple[Rows, ...], Field(min_length=1, max_length=512)]
Action = Literal["zero", "scale", "uniform", "shuffle", "replace"]
Removal = Literal["delete", "mask", "pad", "zero_embedding", "knock_out"]
SiteKind = Literal["encoder", "decoder", "cross", "vision", "cross_vision", "pooling"]


class Body(BaseModel):
    """A part of a request: unknown fields and values of other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def lengths(self) -> list[int]:
        """The characters of each input."""
        return []


class Given(Body):
    """An input: a text, a pair, a prompt, or a picture, alone or with a text."""

    text: Words | None = None
    pair: Words | None = None
    prefix: Words | None = None
    picture: Annotated[str, Field(max_length=20_000_000)] | None = Field(
        None, description="PNG or JPEG in base64"
    )

    @model_validator(mode="after")
    def _has_something(self) -> "Given":
        if self.text is None and self.picture is None:
            raise ValueError("an input has a text or a picture")
        if self.pair is not None and (self.text is None or self.picture is not None):
            raise ValueError("a pair stands beside a text, without a picture")
        return self

    def lengths(self) -> list[int]:
        """The length of all texts together."""
        return [sum(len(each or "") for each in (self.text, self.pair, self.prefix))]


class Asking(Body):
    """Which model, which input, and what to explain."""

    model: Key
    input: Given
    target: Annotated[str, Field(min_length=1, max_length=500)] | Number | None = None
    position: Number | None = None

    def lengths(self) -> list[int]:
        """The characters of the input."""
        return self.input.lengths()


class Explaining(Asking):
    """Explain a prediction by a method."""

    method: Name | None = None
    maps: bool = True


class Compared(Asking):
    """One of the explanations that are compared."""

    method: Name | None = None


class Comparing(Body):
    """Put explanations side by side."""

    explanations: Annotated[tuple[Compared, ...], Field(min_length=2, max_length=4)]

    def lengths(self) -> list[int]:
        """The characters of each input."""
        return [length for each in self.explanations for length in each.lengths()]


class GivenEdit(Body):
    """A change of the attention, and where it is made."""

    action: Action
    kind: SiteKind | None = None
    layer: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    heads: Numbers | None = None
    queries: Numbers | None = None
    keys: Numbers | None = None
    factor: Weight | None = Field(None, description="of scale")
    seed: Seed = Field(0, description="of shuffle")
    weights: Row | Rows | HeadRows | None = Field(None, description="of replace")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "GivenEdit":
        needed = {"scale": "factor", "replace": "weights"}
        for action, name in needed.items():
            if (getattr(self, name) is not None) != (self.action == action):
                raise ValueError(f"{name} belongs to the action {action!r}, and it needs one")
        return self


Edits = Annotated[tuple[GivenEdit, ...], Field(max_length=MOST_EDITS)]


class Intervening(Asking):
    """Ask the model again with its attention changed."""

    edits: Edits = ()
    maps: bool = False


class Removing(Asking):
    """Ask the model again without sets of tokens."""

    removal: Removal = "mask"
    sets: Annotated[
        tuple[Annotated[tuple[Number, ...], Field(max_length=4096)], ...],
        Field(min_length=1, max_length=MOST_SETS),
    ]


class Curving(Asking):
    """Remove one token after the other, in three orders."""

    method: Name | None = None
    removal: Removal = "mask"
    seed: Seed = 0


class State(Asking):
    """What the page shows, as far as it can be computed again."""

    method: Name | None = None
    edits: Edits = ()
    removed: Annotated[tuple[Number, ...], Field(max_length=4096)] = ()
    removal: Removal = "mask"


class Mark(Body):
    """A text, its label, and the places that a person marked."""

    text: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    pair: Annotated[str, Field(min_length=1, max_length=1_000_000)] | None = None
    label: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    spans: Annotated[tuple[tuple[Number, Number], ...], Field(max_length=4096)] = ()

    @model_validator(mode="after")
    def _lies_within(self) -> "Mark":
        within = len(self.text if self.pair is None else self.pair)
        for start, end in self.spans:
            if not start < end <= within:
                raise ValueError(f"{start} to {end} is not within the {within} characters")
        return self


class Marking(Body):
    """What a person marked in several texts."""

    marks: Annotated[tuple[Mark, ...], Field(min_length=1, max_length=10_000)]


class Searching(Asking):
    """What both searches for another attention take."""

    layer: Annotated[int, Field(ge=-1000, le=1000)] = -1
    seed: Seed = 0


class AdversaryJob(Searching):
    """Search for a different attention with the same prediction."""

    job: Literal["adversary"]
    tolerance: Annotated[float, Field(gt=0, le=1)] = 0.01


class SameOutputJob(Searching):
    """Search for another attention with the very same output."""

    job: Literal["same_output"]


class PruneJob(Body):
    """Switch heads off, the least important first, and measure how accurate the model stays."""

    job: Literal["prune"]
    model: Key
    by: Name = "attattr"
    data: Name | None = None
    count: Annotated[int, Field(ge=4, le=1000)] = 100
    seed: Seed = 0


class LabelledText(Body):
    """A text of the user's own, with its label if it is known."""

    text: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    pair: Annotated[str, Field(min_length=1, max_length=1_000_000)] | None = None
    label: Annotated[str, Field(min_length=1, max_length=500)] | None = None


class AuditJob(Body):
    """A quick audit, on texts that come with Attlas or on those of the user."""

    job: Literal["audit"]
    model: Key
    data: Name | None = None
    texts: Annotated[tuple[LabelledText, ...], Field(min_length=4, max_length=1000)] | None = None
    count: Annotated[int, Field(ge=4, le=1000)] = 60
    seed: Seed = 0

    def lengths(self) -> list[int]:
        """The characters of each text."""
        return [len(each.text) + len(each.pair or "") for each in self.texts or ()]

    @model_validator(mode="after")
    def _has_one_source(self) -> "AuditJob":
        if self.data is not None and self.texts is not None:
            raise ValueError("an audit is of data or of texts, not of both")
        return self


AnyJob = AdversaryJob | SameOutputJob | PruneJob | AuditJob
JobRequest = Annotated[AnyJob, Field(discriminator="job")]


def plain_request(request: BaseModel) -> dict[str, Any]:
    """A request as it was sent, without what was left out."""
    return request.model_dump(mode="json", exclude_unset=True)

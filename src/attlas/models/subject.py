"""Subject: a model and its tokenizer, the user's way to the model."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.ask import ask, pose, predict_each
from attlas.models.asking.map_selection import MapSelection, maps_of
from attlas.models.asking.memory import arrays_of
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import texts_of
from attlas.models.facts.model_lock import model_lock
from attlas.models.tap.call import Call
from attlas.models.tap.on_patches import call_on_patches
from attlas.restoring import settled
from attlas.results import Maps, Site
from attlas.results.support.frames import Frame, frame


class Subject(OpenModel):
    """A model and its tokenizer or image processor; Attlas leaves both unchanged."""

    def __repr__(self) -> str:
        return f"Subject({self.name}: {self.task.name if self.task else 'no head'})"

    def comparing(self) -> "Subject":
        """The same model, with the similarity of two texts as its prediction."""
        return Subject(self.model, self.tokenizer, name=self.name, task="similarity")

    def held(self) -> AbstractContextManager[None]:
        """Keep other threads from opening the model, for the length of a `with`.

        While a model is explained it stands still: no dropout, no gradients of parameters. A thread
        that trains it meanwhile takes each step, from the forward pass to the optimizer, within
        `with subject.held():`; explanations in other threads wait, and so does it for them.
        """
        return model_lock(self.model)

    @settled
    def encode(self, text: Any, request: Request = Request()) -> Inputs:  # noqa: B008
        """Encode one text, picture, or pair of both as a batch of one on the model's device."""
        return encode_input(self, text, request)

    @settled
    def ask(
        self,
        texts: Sequence[Any],
        request: Request | Sequence[Request] = Request(),  # noqa: B008
    ) -> list[Question]:
        """Questions about texts; texts of equal length share one.

        The request is one for all texts, or a list with one for each.
        """
        return ask(self, texts, request)

    @settled
    def pose(
        self,
        texts: Sequence[Any],
        request: Request | Sequence[Request] = Request(),  # noqa: B008
    ) -> list[Question]:
        """Like `ask`, before the model has run: targets are found by the first pass."""
        return pose(self, texts, request)

    @settled
    def predict(self, texts: Any) -> Frame:
        """The label and probability that the model gives each text."""
        batch, _ = texts_of(texts)
        found = predict_each(self, batch)
        rows = [(text, label, sure) for text, (label, sure) in zip(batch, found, strict=True)]
        return frame(rows, columns=["text", "label", "probability"])

    @settled
    def attention(
        self,
        text: Any,
        sites: str | int | Sequence[str | int] | None = None,
        heads: int | Sequence[int] | None = None,
        queries: int | Sequence[int] | None = None,
        *,
        prefix: Any = None,
        chat: bool = False,
        truncate: bool = False,
    ) -> Maps:
        """The attention of one text, at every site or only where you ask for it.

        `sites` are names (`encoder.3`), kinds (`cross`) or layer numbers; negative numbers count
        from the top. `heads` and `queries` are numbers of heads and rows, in the order you want
        them; negative ones count from the end. The maps contain only these heads and rows, and
        `Maps.queries` tells which tokens the rows are. `prefix`, `chat` and `truncate` are those of
        `explain`.
        """
        if prefix and not self.has_decoder:
            raise UsageError(f"a prefix is for an encoder–decoder that writes, not {self.name}")
        inputs = self.encode(text, Request(prefix=prefix, chat=chat, truncate=truncate))
        return self.attention_to(inputs, sites, heads, queries)

    def attention_to(
        self,
        inputs: Inputs,
        sites: str | int | Sequence[str | int] | None = None,
        heads: int | Sequence[int] | None = None,
        queries: int | Sequence[int] | None = None,
    ) -> Maps:
        """Like `attention`, for one text that is encoded already."""
        selection = MapSelection.of(self.sites, inputs, sites, heads, queries)
        stages = self.stages(inputs)

        def take(call: Call) -> tuple[Site, Tensor]:
            return selection.take(call_on_patches(call, stages))

        with self.folding(take, selection.sites) as held:
            self.forward(inputs)
        arrays = arrays_of([weights[0] for _, weights in held])
        read = [site for site, _ in held]
        return maps_of(inputs, 0, read, arrays, queries=selection.queries)


def check_subject(subject: Any, verb: str) -> None:
    """Raise an error unless this is a Subject."""
    if not isinstance(subject, Subject):
        raise UsageError(f"{verb} takes a Subject (attlas.load), not {type(subject).__name__}")

"""Subject: a model and its tokenizer under examination, the one door to the model."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from inspect import signature
from typing import Any

import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from attlas.errors import ModelError, UnknownNameError, UsageError
from attlas.models.asking.ask import ask, encode_text
from attlas.models.asking.map_selection import Pick, map_bytes, maps_of
from attlas.models.asking.question import Held, Question
from attlas.models.asking.readout import last_blocks
from attlas.models.asking.resolve import Request
from attlas.models.branching.blocks import BlockCall
from attlas.models.encoding import images
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.pairs import encode_pair, sample_objects
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.freezing import borrowed
from attlas.models.facts.tasks import TASKS, Task, find_task
from attlas.models.facts.unwrap import unwrap
from attlas.models.tap.edits import Edit
from attlas.models.tap.tap import Call, Seen, tap
from attlas.results import Maps, Site
from attlas.shapes import Logits

MOST_ROWS = 64
MAP_BYTES = 2**30  # how much attention a batch may hold
COPIES = 4  # of one layer's attention that are there while it is computed
SAMPLE = "one of these"  # of more than one token, or any attention would look alike


class Subject:
    """A model and its tokenizer (or image processor), left as they were found."""

    def __init__(
        self, model: Any, tokenizer: Any = None, *, name: str | None = None, task: str | None = None
    ) -> None:
        if task is not None and task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        self.model: nn.Module = unwrap(model)
        both = hasattr(tokenizer, "tokenizer") and hasattr(tokenizer, "image_processor")
        self.tokenizer = tokenizer.tokenizer if both else tokenizer
        self.image_processor = tokenizer.image_processor if both else tokenizer
        self.task: Task | None = TASKS[task] if task else find_task(self.model)
        self.name = name or getattr(self.model, "name_or_path", "") or type(self.model).__name__
        self.block_calls: dict[Any, list[BlockCall]] = {}  # by the shape of inputs, once studied
        if tokenizer is None:
            raise UsageError("a subject needs a tokenizer, or an image processor, beside the model")
        if self.reads_pairs and not self.reads_objects and not both:
            raise UsageError(
                f"{self.name} reads a text and a picture: it needs a processor of both, one with a "
                f"tokenizer and an image_processor, not {type(tokenizer).__name__}"
            )

    def __repr__(self) -> str:
        return f"Subject({self.name}: {self.task.name if self.task else 'no head'})"

    # What the model is

    @property
    def device(self) -> torch.device:
        """Where the inputs go."""
        return next(self.model.parameters()).device

    @property
    def reads_images(self) -> bool:
        """Whether the inputs are pictures."""
        return internals.takes_pixels(self.model)

    @property
    def reads_pairs(self) -> bool:
        """Whether an input is a text and a picture, each in a stream of its own."""
        return self.task is not None and self.task.pairs

    @property
    def reads_objects(self) -> bool:
        """Whether what is seen beside a text are objects that a detector found."""
        return self.reads_pairs and "visual_feats" in self.parameters

    @property
    def has_decoder(self) -> bool:
        """Whether this is an encoder–decoder."""
        return bool(getattr(self._config, "is_encoder_decoder", False))

    @property
    def predicts_next(self) -> bool:
        """Whether the output is about the next token."""
        return self.task is not None and self.task.name in ("causal lm", "sequence to sequence")

    @property
    def _config(self) -> Any:
        return getattr(self.model, "config", None)

    @cached_property
    def labels(self) -> list[str]:
        """The names of the classes."""
        if self.task is not None and self.task.name == "next sentence":
            return ["IS_NEXT", "NOT_NEXT"]
        if self.task is not None and self.task.name == "image and text":
            return ["similarity"]
        names: Mapping[int, str] = self._config.id2label
        count = getattr(self._config, "num_qa_labels", len(names))
        if len(names) != count:  # of answers, a configuration may know the number alone
            return [f"answer {index}" for index in range(count)]
        return [names[index] for index in sorted(names)]

    @property
    def link(self) -> str:
        """How logits become probabilities: softmax, sigmoid, or identity for a regression."""
        problem = getattr(self._config, "problem_type", None)
        name = self.task.name if self.task else ""
        if name == "image and text":
            return "identity"
        if name not in ("sequence classification", "image classification"):
            return "softmax"
        if problem == "regression" or (len(self.labels) == 1 and problem is None):
            return "identity"
        return "sigmoid" if problem == "multi_label_classification" else "softmax"

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens the model takes."""
        limits = [getattr(self.tokenizer, "model_max_length", None)]
        limits.append(getattr(self._config, "max_position_embeddings", None))
        limits.append(internals.longest_text(self.model))
        for path, module in self.model.named_modules():
            if path.endswith("position_embeddings") and isinstance(module, nn.Embedding):
                offset = 0 if module.padding_idx is None else module.padding_idx + 1
                limits.append(module.num_embeddings - offset)
        return min(
            (limit for limit in limits if isinstance(limit, int) and limit > 0), default=2**30
        )

    @property
    def sites(self) -> tuple[Site, ...]:
        """The places where attention happens, in the order of call."""
        return tuple(site for site, _ in self.places)

    @cached_property
    def places(self) -> tuple[tuple[Site, str], ...]:
        """Each site with the path of the module that owns it; one short forward finds them.

        In a second one nothing is read, so that which modules may go by fused attention is settled
        here, and all that is asked later is computed in the same way.
        """
        inputs = self.sample_inputs()
        found = tuple((call.site, call.path) for call in self.read(inputs))
        with self.tap(sites=()):
            self._pass(inputs)
        return found

    @cached_property
    def ways_in(self) -> list[nn.Module]:
        """The modules that turn ids or pixels into vectors."""
        return internals.ways_in(self.model)

    @cached_property
    def is_sequence_first(self) -> bool:
        """Whether the stream through its blocks is `[token, batch, feature]`, as in XLNet."""
        found: list[int] = []

        def look(_module: Any, _arguments: Any, output: Any) -> None:
            found.append((output if isinstance(output, Tensor) else output[0]).shape[0])

        inputs = self.sample_inputs()
        handle = last_blocks(self)[0].register_forward_hook(look)
        try:
            self._pass(inputs)
        finally:
            handle.remove()
        return found[-1] != 1

    def sample(self) -> Any:
        """A small input of the kind this model reads."""
        if self.reads_objects:
            return SAMPLE, sample_objects(self.model)
        if self.reads_images or self.reads_pairs:
            picture = Image.new("RGB", (32, 32), "grey")
            return (picture, SAMPLE) if self.reads_pairs else picture
        text = f"{self.tokenizer.mask_token} {SAMPLE}" if self._fills_masks else SAMPLE
        return (text, text) if self.task and self.task.name == "question answering" else text

    def sample_inputs(self) -> Inputs:
        """The same as a batch of one; a decoder is given what it would have written."""
        written = SAMPLE if self.has_decoder else ""
        return self.encode(self.sample(), Request(prefix=written, truncate=True))

    @property
    def _fills_masks(self) -> bool:
        return self.task is not None and self.task.name == "masked lm"

    # What it can be asked

    def encode(self, text: Any, request: Request = Request()) -> Inputs:  # noqa: B008
        """One text (or picture, or a pair of both) as a batch of one, on the model's device."""
        if self.reads_pairs:
            return encode_pair(self, text, request)
        if self.reads_images:
            return self._encode_image(text)
        if images.is_image(text):
            raise UsageError(f"{self.name} reads text, not pictures")
        return encode_text(self, text, request)

    def _encode_image(self, image: Any) -> Inputs:
        pixels = self.pixels_of(image)
        size = images.patch_size(self.model)
        tokens = images.patch_tokens(pixels, size, self.count_patches({"pixel_values": pixels}))
        return Inputs.of_image(pixels, tokens, image)

    def pixels_of(self, image: Any) -> Tensor:
        """A picture as the model takes it."""
        weight = next(self.model.parameters())
        return images.prepare(self.image_processor, image).to(weight.device, weight.dtype)

    def count_patches(self, arguments: Mapping[str, Tensor]) -> int:
        """How many places the first attention in a picture is over."""
        with (
            self.folding(lambda call: (call.site.kind, call.weights.shape[-1])) as found,
            torch.no_grad(),
        ):
            self.model(**arguments)
        return next((length for kind, length in found if kind == "vision"), found[0][1])

    def run(self, arguments: Mapping[str, Tensor], first_place: int | None = None) -> Logits:
        """The output as `[batch, place, choice]`, from `first_place` on where it can be cut.

        Places are counted from the end, so whether the output was cut makes no difference.
        """
        if self.task is None:
            raise UsageError(
                f"{self.name} has no head, so it predicts nothing; if it has one that its "
                "config.json does not name, give the task (task=, --task)"
            )
        extra: dict[str, Any] = {}
        if "use_cache" in self.parameters:
            extra["use_cache"] = False
        if first_place is not None and "logits_to_keep" in self.parameters:
            extra["logits_to_keep"] = -first_place
        with internals.padding_known(self.model):
            logits = self.task.logits(self.model(**arguments, **extra))
        if not _is_recorded(logits) and not torch.isfinite(logits).all():
            raise ModelError(self._why_not_finite())
        return logits

    @cached_property
    def parameters(self) -> set[str]:
        """The names of the arguments that the model's forward takes."""
        return set(signature(self.model.forward).parameters)

    def _why_not_finite(self) -> str:
        for name, parameter in self.model.named_parameters():
            if not torch.isfinite(parameter).all():
                return f"the weights of {self.name} are damaged: {name} is not finite"
        return f"the output of {self.name} is not finite in {self.model.dtype}; try float32"

    def read(self, inputs: Inputs) -> list[Call]:
        """The attention of a batch at every site, without gradients, all of it held at once."""
        with self.tap() as seen:
            self._pass(inputs)
        return seen.calls

    def _pass(self, inputs: Inputs) -> None:
        """Run the model on a batch for what is seen on the way."""
        extra = {"use_cache": False} if "use_cache" in self.parameters else {}
        with torch.no_grad(), internals.padding_known(self.model):
            self.model(**inputs.arguments, **extra)

    @contextmanager
    def tap(
        self,
        edits: Edit | Sequence[Edit] = (),
        *,
        gradients: bool = False,
        sites: Collection[Site] | None = None,
    ) -> Iterator[Seen]:
        """Open the model at its attention: read it, rewrite it, and leave it as it was found.

        Within the block dropout is off and no parameter asks for a gradient. `sites` are those to
        read, all if not given; the others are not spelled out.
        """
        given = [edits] if isinstance(edits, Edit) else list(edits)
        checked = [edit.check(self.sites) for edit in given]
        opened = tap(self.model, checked, gradients=gradients, wants=_among(sites))
        with borrowed(self.model), opened as seen:
            yield seen

    @contextmanager
    def folding(
        self, keep: Callable[[Call], Held], sites: Collection[Site] | None = None
    ) -> Iterator[list[Held]]:
        """Open the model and reduce each attention as it passes; the list holds what `keep` gave.

        `sites` are those to read, as for `tap`.
        """
        held: list[Held] = []

        def take(call: Call) -> Call:
            with torch.no_grad():
                held.append(keep(call))
            return replace(call, weights=call.weights.new_empty(0), mask=None, values=None)

        with borrowed(self.model), tap(self.model, wants=_among(sites), keep=take):
            yield held

    def ask(self, texts: Sequence[Any], request: Request = Request()) -> list[Question]:  # noqa: B008
        """Questions about texts, those of equal length together; each knows where its rows go."""
        self.is_sequence_first  # noqa: B018  found now, before anything is opened to be read
        return ask(self, texts, request)

    def rows_at_once(self, inputs: Inputs) -> int:
        """How many inputs of this length may share a batch, one layer's attention being there."""
        largest = max(map_bytes(inputs, [site]) for site in self.sites)
        return _rows(COPIES * largest)

    def rows_holding(self, inputs: Inputs, sites: Collection[Site]) -> int:
        """How many inputs of this length may share a batch that holds all these maps."""
        return _rows(map_bytes(inputs, sites))

    def predict(self, texts: Any) -> pd.DataFrame:
        """What the model says of each text: its label and probability."""
        batch = texts if isinstance(texts, list) else [texts]
        rows: list[Any] = [None] * len(batch)
        for question in self.ask(batch):
            for index, target, prediction in question.answers():
                best = prediction[0]
                sure = best["value"] if best["probability"] is None else best["probability"]
                rows[index] = (batch[index], target.name, sure)
        return pd.DataFrame(rows, columns=["text", "label", "probability"])

    def attention(
        self,
        text: Any,
        sites: str | int | Sequence[str | int] | None = None,
        heads: int | Sequence[int] | None = None,
        queries: int | Sequence[int] | None = None,
    ) -> Maps:
        """The attention of one text: at every site, or what is asked for alone.

        `sites` are names (`encoder.3`), kinds (`cross`) or layer numbers, from the top if negative.
        `heads` and `queries` are numbers of heads and rows, in the order wanted, from the end if
        negative. Nothing else is held: the maps have as many heads and rows as were asked for, and
        `Maps.queries` says which tokens the rows are.
        """
        inputs = self.encode(text)
        pick = Pick.of(self.sites, inputs, sites, heads, queries)
        with self.folding(pick.take, pick.sites) as held:
            self._pass(inputs)
        return maps_of(inputs, 0, held, queries=pick.queries)


def _among(sites: Collection[Site] | None) -> Callable[[Site], bool] | None:
    if sites is None:
        return None
    names = {site.name for site in sites}
    return lambda site: site.name in names


def _is_recorded(tensor: Tensor) -> bool:
    """Whether the kernels are written down only: then there is no number to look at yet."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def _rows(bytes_a_row: int) -> int:
    return max(1, min(MOST_ROWS, MAP_BYTES // max(bytes_a_row, 1)))

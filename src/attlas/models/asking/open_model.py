"""OpenModel: a model that can be run and opened at its attention."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from attlas.errors import AttlasError, ModelError, UnsupportedModelError, UsageError
from attlas.models.asking.as_found import ON_EAGER, distance, first_tensor, moves_as_far, rounding
from attlas.models.asking.map_selection import largest_map, map_bytes
from attlas.models.asking.memory import free_bytes, is_passing
from attlas.models.encoding.encode_input import sample_inputs
from attlas.models.encoding.inputs import COMPARED, Inputs
from attlas.models.encoding.similarity import pooling_of, similarity
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.facts.sites import describe, find_block
from attlas.models.facts.stages import Stages, has_stages
from attlas.models.tap.call import Call, Seen
from attlas.models.tap.edits import Edit, uniform
from attlas.models.tap.folding import among, fold_calls
from attlas.models.tap.opening import tap
from attlas.results import Site
from attlas.shapes import Logits
from attlas.tokens import PICTURE
from attlas.verbs import refuse_unknown

MOST_ROWS = {"cpu": 128, "cuda": 512}
MAP_BYTES = 2**30  # how much attention a batch may hold, or more on a large GPU
OF_DEVICE = 32  # there, one part in so many of its memory
OF_FREE = 4  # of the memory that is free, one part in so many at most
WITHOUT_LOOKING = 2**26  # bytes that are taken to be free
COPIES = 4  # copies of one layer's attention that exist while it is computed
OF_PICTURES = ("vision", "cross_vision")  # the kinds of sites that attend from a picture
# What the code of a model raises if it cannot take an input.
OWN_FAILURES = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)
Held = TypeVar("Held")
Place: TypeAlias = tuple[Site, str]  # with the path of its attention module


class OpenModel(ModelFacts):
    """A model that can be run on batches and opened at its attention."""

    _cut: Sequence[Site] = ()  # sites that no gradient reaches, although they count

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The places where attention happens, in the order of call."""
        return tuple(site for site, _ in self.places)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Each site with the path of its attention module, found by one short forward pass.

        A second pass, without reading, finds out which modules may use fused attention, so that
        all later passes compute in the same way. A third, if the model came with fused attention,
        is the model as it was found: the opened model must compute the same. Attention that the
        prediction does not depend on (a pooler beside the classifier, as in SigLIP) is left out.
        """
        with torch.inference_mode(False):
            inputs = sample_inputs(self)
            with evaluation_mode(self.model), tap(self.model) as seen:
                opened = self.forward(inputs)
            with self.tap(sites=()):
                self.forward(inputs)
            if "sdpa" in internals.implementations(internals.configurations(self.model)):
                self._refuse_another_function(inputs, opened)
            found = tuple((call.site, call.path) for call in seen.calls if self._is_open(call.path))
            return tuple(self._that_count(inputs, found)) or found

    def _is_open(self, path: str) -> bool:
        """Whether the attention at a path is a site: not if it looks at a picture to be told of."""
        return not self.needs_pictures or self.writes_at(path)

    def _refuse_another_function(self, inputs: Inputs, opened: Tensor) -> None:
        """Raise if the opened model's output is not the model's own, rounding apart."""
        found = self.forward(inputs)
        apart, most = distance(opened, found), rounding(found)
        if apart <= most or moves_as_far(lambda: self.forward(inputs), found, apart):
            return
        raise UnsupportedModelError(
            f"{type(self.model).__name__} cannot be opened: with its attention spelled out, its "
            f"output is {apart:.1e} of its size away from that on sdpa, and rounding explains "
            f"{most:.1e}; {ON_EAGER}"
        )

    def _that_count(self, inputs: Inputs, found: Sequence[Place]) -> Sequence[Place]:
        """The places that count; all if the model has no head, or one head for two streams.

        A place counts if it has a gradient. A model may cut gradients itself, as one does that runs
        a frozen part without them: then a place counts if even attention there changes the output.
        """
        if self.task is None or self.reads_pairs:
            return found
        sites = [site for site, _ in found]
        opened = tap(self.model, gradients=True, wants=among(sites))
        with torch.enable_grad(), evaluation_mode(self.model), opened as seen:
            total = self.run(inputs.arguments).sum()
            if not total.requires_grad:
                self._cut = sites
                return found
            slopes = torch.autograd.grad(total, seen.weights, allow_unused=True)
        reached = [site for site, slope in zip(sites, slopes, strict=True) if slope is not None]
        others = [site for site in sites if site not in reached]
        if others:
            before = self._scored(inputs)
            self._cut = [
                site for site in others if not torch.equal(self._scored(inputs, site), before)
            ]
        return [place for place in found if place[0] in (*reached, *self._cut)]

    def _scored(self, inputs: Inputs, site: Site | None = None) -> Logits:
        """The output of the opened model, with even attention at a site."""
        even = [] if site is None else [uniform().at(kind=site.kind, layer=site.layer)]
        with evaluation_mode(self.model), torch.no_grad(), tap(self.model, even):
            return self.run(inputs.arguments)

    def check_gradients(self, sites: Collection[Site] | None = None) -> None:
        """Raise if the model lets no gradient through to one of these sites, by default any."""
        cut = [site for site in self.sites if site in self._cut and site in (sites or self.sites)]
        if cut:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} lets no gradient through to its attention at "
                f"{describe(cut)}: methods that need gradients cannot run on it; leave_one_out, "
                "kernel_shap and lime need none"
            )

    @cached_property
    def stream_axes(self) -> tuple[int, int]:
        """Which axes of hidden states are the batch and the tokens.

        XLNet has the tokens first; Gemma 3n has several streams before both.
        """
        shapes: list[tuple[int, ...]] = []

        def look(_module: Any, _arguments: Any, output: Any) -> None:
            shapes.append(tuple((output if isinstance(output, Tensor) else output[0]).shape))

        inputs = sample_inputs(self)
        with hooking() as hooks:
            hooks.after(self.last_blocks[0], look)
            self.forward(inputs)
        if not shapes:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} calls the forward of its layers past torch's hooks, "
                "so what goes through them cannot be read"
            )
        if shapes[-1][0] == 1:
            return 0, 1
        return (1, 2) if len(shapes[-1]) == 4 else (1, 0)

    @cached_property
    def pooling(self) -> str:
        """How the vectors of a text's tokens become one, in a model that compares texts."""
        return pooling_of(self)

    @property
    def last_blocks(self) -> list[nn.Module]:
        """The last block of the model, or the last of the text and the last of the picture."""
        seen = [path for site, path in self.places if site.kind in OF_PICTURES]
        others = [path for _, path in self.places if path not in seen]
        ends = (others[-1], seen[-1]) if self.reads_pairs else (self.places[-1][1],)
        return [find_block(self.model, path) for path in ends]

    def run(self, arguments: Mapping[str, Tensor], first_place: int | None = None) -> Logits:
        """The output as `[batch, place, choice]`, from `first_place` on if the model can do that.

        Places are counted from the end, so it makes no difference whether the output was cut.
        """
        logits = self.run_unchecked(arguments, first_place)
        self.check_finite(logits)
        return logits

    def run_unchecked(
        self, arguments: Mapping[str, Tensor], first_place: int | None = None
    ) -> Logits:
        """Like `run`, for a caller who looks at the output anyway: nothing is waited for."""
        if self.task is None:
            raise UsageError(
                f"{self.headless}; explain a pair of texts, which it can compare "
                "(task='similarity'), or name the head's task (task=, --task)"
            )
        extra = {}
        if first_place is not None and "logits_to_keep" in self.parameters:
            extra["logits_to_keep"] = -first_place
        output = self._output({k: v for k, v in arguments.items() if k != COMPARED}, extra)
        if COMPARED in arguments:
            return similarity(output.last_hidden_state, arguments, self.pooling)
        return self.task.logits(output)

    def check_finite(self, logits: Tensor) -> None:
        """Raise if the output is not finite, and say why; a recorded one has no values yet."""
        is_recorded = logits.is_cuda and torch.cuda.is_current_stream_capturing()
        if not is_recorded and not torch.isfinite(logits).all():
            raise ModelError(self._why_not_finite())

    def _why_not_finite(self) -> str:
        for name, parameter in self.model.named_parameters():
            if not parameter.is_meta and not torch.isfinite(parameter).all():
                return f"the weights of {self.name} are damaged: {name} is not finite"
        return f"the output of {self.name} is not finite in {self.model.dtype}; try float32"

    def forward(self, inputs: Inputs) -> Tensor:
        """Run the model on a batch without gradients, for a tap to read; its first output."""
        with evaluation_mode(self.model), torch.no_grad():
            return first_tensor(self._output(inputs.of_model, {}))

    def _output(self, arguments: Mapping[str, Tensor], extra: Mapping[str, Any]) -> Any:
        without_cache = internals.without_cache(anatomy(self.model).configurations)
        try:
            with internals.padding_known(self.model), without_cache:
                return self.model(**arguments, **extra, **self.no_cache)
        except OWN_FAILURES as problem:
            if isinstance(problem, AttlasError) or is_passing(problem):
                raise
            raise UnsupportedModelError.of_failure(self.model, problem) from problem

    def read(self, inputs: Inputs) -> list[Call]:
        """The attention of a batch at every site, without gradients, all in memory at once."""
        with self.tap() as seen:
            self.forward(inputs)
        return seen.calls

    @refuse_unknown
    @contextmanager
    def tap(
        self,
        edits: Edit | Sequence[Edit] = (),
        *,
        gradients: bool = False,
        sites: Collection[Site] | None = None,
    ) -> Iterator[Seen]:
        """Open the model to read and rewrite its attention, and restore it after the block.

        Within the block dropout is off and no parameter asks for a gradient. `sites` are the sites
        to read, by default all; the weights of the others are not computed. With `gradients`, a
        model that lets none through to one of them is refused.
        """
        if gradients:
            self.check_gradients(sites)
        given = [edits] if isinstance(edits, Edit) else list(edits)
        check_kinds("tap takes edits, such as attlas.edits.uniform()", given, Edit)
        check_kinds("sites are taken from subject.sites", sites or (), Site)
        checked = [edit.check(self.sites) for edit in given]
        opened = tap(self.model, checked, gradients=gradients, wants=among(self._read(sites)))
        with evaluation_mode(self.model), opened as seen:
            yield seen

    def folding(
        self, keep: Callable[[Call], Held], sites: Collection[Site] | None = None
    ) -> AbstractContextManager[list[Held]]:
        """Open the model and reduce each attention as it is computed (see `fold_calls`)."""
        return fold_calls(self.model, keep, self._read(sites))

    def _read(self, sites: Collection[Site] | None) -> Collection[Site] | None:
        """The sites to read: not those that look at a picture within the text."""
        sees = bool(self.marks) or self.needs_pictures
        return self.sites if sites is None and sees else sites

    def stages(self, inputs: Inputs) -> Stages | None:
        """The patches that the places of each attention hold; None if these are the tokens."""
        grid = inputs.tokens[0].grids.get(PICTURE)
        if grid is None or not has_stages(self.model) or inputs.picture is not None:
            return None
        return Stages(self.model, grid, len(inputs.tokens[0]) - grid[0] * grid[1])

    def rows_at_once(self, inputs: Inputs, wanted: int | None = None) -> int:
        """How many inputs, of so many wanted, may share a batch that holds a layer's attention."""
        return _rows(self.device, COPIES * largest_map(inputs, self.sites), wanted)

    def rows_holding(
        self, inputs: Inputs, sites: Collection[Site], wanted: int | None = None
    ) -> int:
        """How many inputs of this length may share a batch if the maps of these sites are held."""
        return _rows(self.device, map_bytes(inputs, sites), wanted)


def _rows(device: torch.device, bytes_a_row: int, wanted: int | None = None) -> int:
    most, room = MOST_ROWS.get(device.type, MOST_ROWS["cpu"]), MAP_BYTES
    known = wanted is not None and bytes_a_row * min(wanted, most) <= min(WITHOUT_LOOKING, room)
    if known or wanted == 1:  # one must fit, however little is free
        return most  # asking a GPU what is free takes long
    if device.type == "cuda":
        room = max(room, torch.cuda.get_device_properties(device).total_memory // OF_DEVICE)
    if room > WITHOUT_LOOKING and bytes_a_row * most > WITHOUT_LOOKING:
        room = min(room, (free_bytes(device) or room) // OF_FREE)
    return max(1, min(most, room // max(bytes_a_row, 1)))


def check_kinds(rule: str, given: Collection[Any], kind: type) -> None:
    """Refuse anything that is not of this kind, with the rule."""
    for each in given:
        if not isinstance(each, kind):
            raise UsageError(f"{rule}, not {each!r}")

"""Costs: how fast a model is, from a short probe, and what work of so many passes takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from attlas.errors import AttlasError
from attlas.explaining.footprint import fitting_rows, peak_bytes, weight_bytes
from attlas.explaining.plan import Plan
from attlas.methods import Method
from attlas.models.asking.filling import fill_list
from attlas.models.asking.memory import free_bytes, plain_tokens
from attlas.models.asking.question import Asked, Question
from attlas.models.encoding.encode_input import sample_inputs
from attlas.models.encoding.request import Request
from attlas.models.facts.anatomy import width_of
from attlas.models.states.embeddings import embedding_gradients
from attlas.models.subject import Subject

Number = float | int
PROBED = 256  # tokens of the larger probe
SLOW = 1.0  # seconds of a pass after which the larger probe is made smaller
SMALL = 4  # rows of it then
BACK = 2.0  # passes that a pass back weighs, where it cannot be tried
GUESS = {"cheap": 3, "expensive": 300}  # passes of a method that says nothing of them
STARTS = 6  # passes that a method of many passes begins at least
RECORD = 0.3  # of a pass's start, what encoding a text and recording its result take
SAMPLED = 256  # texts that are encoded to know how long all are
MEASURED = "passes forward and back over a sentence, alone and as a batch"
DERIVED = "passes of the method, the growth with length, and memory, from shapes"
_speeds: "WeakKeyDictionary[nn.Module, Speed]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Expense:
    """Seconds, and passes over a text; and how many more it takes where a text is hardest."""

    seconds: Number = 0.0
    passes: Number = 0.0
    more_seconds: Number = 0.0
    more_passes: Number = 0.0

    def __add__(self, other: "Expense") -> "Expense":
        return Expense(*(mine + own for mine, own in zip(self._parts, other._parts, strict=True)))

    def times(self, often: Number) -> "Expense":
        """The same work, so many times."""
        return Expense(*(each * often for each in self._parts))

    def up_to(self, most: "Expense") -> "Expense":
        """The same work, that takes as much as this where a text is hardest."""
        more = max(most.seconds - self.seconds, 0.0), max(most.passes - self.passes, 0.0)
        return Expense(self.seconds, self.passes, *more)

    @property
    def _parts(self) -> tuple[Number, ...]:
        return self.seconds, self.passes, self.more_seconds, self.more_passes


@dataclass(frozen=True)
class Speed:
    """How long a model takes: to begin a pass, and for each token, forward and with a pass back."""

    start: float
    token: float
    back_start: float
    back_token: float
    growth: float  # by how much a token costs more for each token of its text: the attention

    def cost(self, tokens: int, rows: Number, starts: Number, *, back: bool = False) -> Expense:
        """So many rows of a length, in so many passes."""
        start, token = (self.back_start, self.back_token) if back else (self.start, self.token)
        seconds = starts * start + rows * tokens * token * (1 + self.growth * tokens)
        return Expense(seconds, rows * (1 + BACK if back else 1))

    def in_batches(self, question: Question, rows: Number) -> Expense:
        """So many rows for each text of a question, without gradients, in full batches."""
        tokens, device = _length(question), question.subject.device
        starts = max(min(STARTS, rows), rows * len(question) * tokens / plain_tokens(device))
        return self.cost(tokens, rows * len(question), starts)

    def of_method(self, question: Question, method: Method, options: Mapping[str, Any]) -> Expense:
        """A method on a question."""
        records = Expense(RECORD * self.start * len(question))
        if method.weighs is not None:
            known = {**method.options, **options}
            usual = self.in_batches(question, method.weighs(question, known))
            if method.hardest is None:
                return usual + records
            hard = method.weighs(question, {**known, **method.hardest(known)})
            return usual.up_to(self.in_batches(question, hard)) + records
        passes = method.passes or GUESS[method.cost]
        back = not {"gradients", "embeddings"}.isdisjoint(method.needs)
        found = self.cost(_length(question), passes * len(question), passes, back=back)
        return found + records


def speed_of(subject: Subject) -> Speed:
    """How fast a model is, found once by a few passes over a short input."""
    if subject.model not in _speeds:
        with torch.inference_mode(False):
            _speeds[subject.model] = _probe(subject)
    return _speeds[subject.model]


def _probe(subject: Subject) -> Speed:
    inputs = sample_inputs(subject)
    tokens = len(inputs.tokens[0])
    one = Question(subject, inputs, (Asked(Request(truncate=True)),), (0,), maps=False)
    subject.forward(inputs)  # the first pass of a process is slow
    alone = _seconds(subject, lambda: subject.forward(inputs))
    rows = max(2, PROBED // tokens) if alone < SLOW else SMALL
    many = inputs.rows([0] * rows)
    together = _seconds(subject, lambda: subject.forward(many))
    start, token = _line(alone, together, tokens, rows)
    try:
        copies = one.rows([0] * rows)
        embedding_gradients(one, "logit")
        alone = _seconds(subject, lambda: embedding_gradients(one, "logit"))
        together = _seconds(subject, lambda: embedding_gradients(copies, "logit"))
        back = _line(alone, together, tokens, rows)
    except AttlasError:  # some models let no gradient through
        back = (start * (1 + BACK), token * (1 + BACK))
    return Speed(start, token, *back, _growth(subject))


def _line(alone: float, together: float, tokens: int, rows: int) -> tuple[float, float]:
    """The seconds of a pass without tokens, and of each token."""
    token = max(together - alone, 0.1 * together) / (tokens * (rows - 1))
    return max(alone - tokens * token, 0.1 * alone), token


def _seconds(subject: Subject, work: Callable[[], Any]) -> float:
    """The shorter of two times: the longer one was disturbed."""
    found = []
    for _ in range(2):
        _wait(subject.device)
        begun = perf_counter()
        work()
        _wait(subject.device)
        found.append(perf_counter() - begun)
    return min(found)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _growth(subject: Subject) -> float:
    """Products of attention by products of weights, for each token of a text."""
    model: Any = subject.model
    inside = sum(each.numel() for each in model.parameters())
    table = getattr(model.get_input_embeddings(), "weight", None)
    inside -= 0 if table is None else table.numel()
    return float(2 * width_of(model) * len(subject.sites) / max(inside, 1))


def pose_sample(
    subject: Subject, texts: Sequence[Any], requests: Sequence[Request], *, fills: bool
) -> tuple[list[Question], float]:
    """Questions about evenly drawn texts, and how many texts stand behind each of these.

    Texts that the model cannot read are left out, unless that leaves none.
    """
    step = max(1, len(texts) // SAMPLED)
    drawn = list(zip(texts, requests, strict=True))[::step]
    readable, problem = [], None
    for text, request in drawn:
        try:
            subject.encode(text, request)
        except AttlasError as error:
            problem = error
        else:
            readable.append((text, request))
    if problem is not None and not readable:
        raise problem
    questions = subject.pose([each for each, _ in readable], [each for _, each in readable])
    asked = fill_list(questions) if fills else questions
    return asked, len(texts) / max(len(drawn), 1)


def make_plan(
    what: str,
    subject: Subject,
    questions: Sequence[Question],
    costs: Mapping[str, Expense],
    method: Method,
    *,
    scale: Number = 1.0,
    notes: Iterable[str] = (),
) -> Plan:
    """The plan of some work on these questions, each of which stands for `scale` like it.

    `method` is the one that takes most memory.
    """
    lengths = [len(own) for each in questions for own in each.inputs.tokens]
    rows = [min(len(each), fitting_rows(each, method)) for each in questions]
    peaks = [peak_bytes(each, method, count) for count, each in zip(rows, questions, strict=True)]
    total = sum(costs.values(), Expense())
    texts = round(scale * len(lengths))
    return Plan(
        what,
        subject.name,
        str(subject.device),
        texts,
        round(scale * sum(lengths)),
        max(lengths, default=0),
        total.passes / max(texts, 1),
        total.seconds,
        {name: each.seconds for name, each in costs.items()},
        max(peaks, default=0),
        weight_bytes(subject),
        free_bytes(subject.device),
        max(rows, default=0),
        MEASURED,
        DERIVED,
        tuple(notes),
        total.seconds + total.more_seconds,
        (total.passes + total.more_passes) / max(texts, 1),
    )


def _length(question: Question) -> int:
    return len(question.inputs.tokens[0])

"""What an answer holds: these classes make the description at /openapi.json."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Payload = dict[str, Any]  # what a view draws: its `kind` says which
JobState = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")


class Part(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Problem(Part):
    """Why a request was not answered: what kind of error, in one sentence, and in which field."""

    kind: str
    says: str
    where: str | None


class ErrorAnswer(Part):
    """A request that was not answered."""

    error: Problem


class Health(Part):
    """Whether it serves."""

    status: Literal["ok"]
    version: str
    models: int
    queued: int
    running: int


class DescribedSite(Part):
    """A place where attention happens."""

    name: str
    kind: str
    layer: int
    heads: int


class DescribedModel(Part):
    """A model of the operator's; `error` says why it could not be loaded."""

    key: str
    name: str
    about: str
    task: str
    takes: Literal["text", "pair", "prompt", "picture", "picture and text"]
    labels: list[str]
    sites: list[DescribedSite]
    longest: int
    data: list[str]
    examples: list[dict[str, str]]
    error: str | None


class DescribedMethod(Part):
    """A method that explains."""

    name: str
    family: str
    family_name: str
    signed: bool
    maps: Literal["sites", "all"] | None
    cost: Literal["cheap", "expensive"]
    summary: str
    reading: str
    paper: str


class Everything(Part):
    """What a page needs to know before its first question."""

    models: list[DescribedModel]
    methods: list[DescribedMethod]
    rankings: list[str]
    removals: list[str]
    actions: list[str]
    default: dict[str, str]
    limits: dict[str, float]


class ExplainAnswer(Part):
    """The payload of an explanation."""

    explanation: Payload
    seconds: float


class CompareAnswer(Part):
    """The payload of a comparison."""

    comparison: Payload
    seconds: float


class Choice(Part):
    """A choice of the model, with its probability, or with its value if it gives a number."""

    label: str
    probability: float | None
    value: float | None = None


class Predicted(Part):
    """The best choices of the model, and the score of the target."""

    prediction: list[Choice]
    score: float


class BothMaps(Part):
    """The attention before and after, each as the payload of maps."""

    before: Payload
    after: Payload


class InterveneAnswer(Part):
    """The prediction before and after edits."""

    before: Predicted
    after: Predicted
    target: str
    flipped: bool
    moved: float
    maps: BothMaps | None
    seconds: float


class Remainder(Part):
    """The score without some tokens; None if nothing is left."""

    score: float | None
    chosen: bool


class RemoveAnswer(Part):
    """The score of the whole text and without each set of tokens."""

    target: str
    whole: Remainder
    without: list[Remainder]
    removable: list[int]
    seconds: float


class RemovalCurve(Part):
    """The score as tokens are removed in one order."""

    name: str
    order: list[int] | None
    scores: list[float | None]
    mean: float | None


class CurvesAnswer(Part):
    """Three curves, and where the method lies between a random order and the best one."""

    target: str
    counts: list[int]
    curves: list[RemovalCurve]
    standing: float | None
    seconds: float


class CodeAnswer(Part):
    """Python lines that run as they are."""

    code: str


class JobProgress(Part):
    """What is being done, and how far it is."""

    what: str
    done: int
    total: int
    left: float | None


class JobLine(Part):
    """A job in the list of all."""

    id: str
    job: Literal["adversary", "same_output", "prune", "audit"]
    model: str
    title: str
    state: JobState
    created: float
    ended: float | None
    request: dict[str, Any]
    progress: JobProgress | None
    error: str | None


class JobAnswer(JobLine):
    """A job with its points and its result."""

    points: list[tuple[float, float]]
    points_total: int
    result: dict[str, Any] | None


class JobsAnswer(Part):
    """All jobs, the newest first."""

    jobs: list[JobLine]


class Forgotten(Part):
    """A job that is gone."""

    id: str

"""What an audit will do: texts, settings and parts of the work, with every mistake found first."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attlas.auditing.command import command
from attlas.auditing.settings import SIZES, Settings, settings_of
from attlas.auditing.texts import Texts, usable_texts
from attlas.auditing.verdict.rules import Rules
from attlas.auditing.work.robustness import wanted
from attlas.data.read_examples import ReadData, read_examples
from attlas.errors import UnknownNameError
from attlas.explaining.order import check_subject
from attlas.models.encoding.request import Request
from attlas.models.facts.fingerprint import fingerprint
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.version import __version__

QUICK_COUNT = 60


class Plan:
    """What an audit will do: the texts, the settings and the parts of the work."""

    def __init__(self, texts: Texts, read: ReadData, settings: Settings, command: str) -> None:
        self.texts, self.read, self.settings = texts, read, settings
        self.command = command  # that makes the report again
        self.parts = texts.parts()
        self.again = wanted(texts, settings)

    def steps(self) -> int:
        """How many parts of the work there are."""
        return len(self.parts) + len(self.again) + len(self.settings.trials)

    def identity(self) -> dict[str, Any]:
        """All that the figures depend on."""
        subject = self.texts.subject
        return {
            "attlas": __version__,
            "model": subject.name,
            "weights": fingerprint(subject.model),
            "device": subject.device.type,
            "dtype": str(subject.model.dtype),
            "data": self.read.source,
            "texts": self.read.fingerprint,
            **self.settings.to_dict(),
        }


def prepare(
    subject: Subject | None,
    data: Any,
    methods: Sequence[str] | None,
    measures: Sequence[str] | None,
    trials: Sequence[str] | None,
    *,
    count: int | None,
    removal: Sequence[str] | None,
    truncate: bool,
    quick: bool,
    seed: int,
    rules: Rules | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
    **columns: str | None,
) -> Plan:
    """Everything but the work: mistakes show here."""
    for name in sizes:
        if name not in SIZES:
            raise UnknownNameError("option", name, SIZES)
    options: dict[str, Any] = {"seed": seed, "truncate": truncate, **sizes}
    if rules is not None:
        options["rules"] = rules
    settings = settings_of(methods, measures, trials, removal, quick, options)
    chosen = load() if subject is None else subject
    check_subject(chosen, "audit")
    most = QUICK_COUNT if quick and count is None else count
    read = read_examples(data, count=most, seed=seed, **columns)
    texts = usable_texts(chosen, read, Request(truncate=truncate), seed)
    asked = {
        **{"split": columns.get("split"), "count": count, "quick": quick, "truncate": truncate},
        **{"method": methods, "measure": measures, "removal": removal, "trial": trials},
    }
    return Plan(texts, read, settings, command(chosen.name, read, {**asked, "seed": seed}))

"""The page of the compatibility survey: its rows, its numbers, and their Markdown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OPENED = ("opened", "second road")
VERDICTS = (*OPENED, "refused", "not built", "wrong", "no softmax attention")
_COLUMNS = ("transformers", "torch", "types", *VERDICTS, "share opened")
HEAD = ("| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|")


@dataclass(frozen=True)
class Row:
    """The survey's result for one type."""

    kind: str
    head: str
    verdict: str
    sites: dict[str, int]
    compared: int = 0
    note: str = ""


def count(rows: Sequence[Row]) -> Counter[str]:
    """Count the types by verdict."""
    return Counter(row.verdict for row in rows)


def share(rows: Sequence[Row]) -> float:
    """The share opened among all types, except those without softmax attention."""
    asked = [row for row in rows if row.verdict != "no softmax attention"]
    return sum(row.verdict in OPENED for row in asked) / max(1, len(asked))


@dataclass(frozen=True)
class Survey:
    """The rows for one version of transformers."""

    transformers: str
    torch: str
    rows: list[Row]

    def summary(self) -> str:
        """One line in the table of versions."""
        counts = [str(count(self.rows)[verdict]) for verdict in VERDICTS]
        cells = [self.transformers, self.torch, str(len(self.rows)), *counts]
        return "| " + " | ".join([*cells, f"**{share(self.rows):.1%}**"]) + " |"

    def table(self) -> str:
        """A line for each type."""
        lines = [
            f"| `{row.kind}` | `{row.head}` | {describe(row)} | {named(row.sites)} | "
            f"{against(row)} | {row.note if row.verdict in OPENED else ''} |"
            for row in sorted(self.rows, key=lambda row: row.kind)
        ]
        head = ["| type | class | | attention | compared | notes |", "|---|---|---|---|---|---|"]
        return "\n".join([*head, *lines])

    def differences(self, newer: Survey) -> str:
        """What differs from a newer version."""
        now = {row.kind: row for row in newer.rows}
        lines = [
            f"- `{row.kind}`: {describe(row)}; {newer.transformers}: {describe(now[row.kind])}"
            for row in self.rows
            if row.kind in now and row.verdict != now[row.kind].verdict
        ]
        gone = sorted(row.kind for row in self.rows if row.kind not in now)
        new = sorted(set(now) - {row.kind for row in self.rows})
        for names, what in ((gone, "only in this version"), (new, "not in this version")):
            if names:
                lines.append(f"- {what}: {', '.join(f'`{name}`' for name in names)}")
        return "\n".join(lines or ["- none"])


def describe(row: Row) -> str:
    """The verdict, with the reason if the type is not open."""
    unopened = row.verdict in ("refused", "not built", "wrong")
    shown = {"not built": "could not be built"}.get(row.verdict, row.verdict)
    return f"{shown}: {row.note}" if unopened else shown


def named(sites: dict[str, int]) -> str:
    """The number of sites of each kind, in words."""
    return ", ".join(f"{number} {kind}" for kind, number in sites.items())


def against(row: Row) -> str:
    """How many sites were compared with transformers' own maps."""
    return f"{row.compared} of {sum(row.sites.values())}" if row.verdict in OPENED else ""


PAGE = """\
# Compatibility

Which types of models does Attlas open? `scripts/compatibility.py` writes this page. It
builds every type in seven of transformers' tables of heads (sequence and token classification,
question answering, masked and causal language models, encoder–decoders, image classification) from
its configuration, small and with random weights, and opens it. Nothing is downloaded.

{summaries}

The oldest versions that Attlas asks for, and the newest (a new release is one command away from
its row):

<!-- versions -->
<!-- end of versions -->

**Opened** means that the attention goes through transformers' `AttentionInterface`; **second road**
means that the modelling file computes attention in its own code, and Attlas reads it at its
softmax. For both, all of this holds, on two texts of twelve tokens (or two pictures):

- With the tap open, the model's output is bit for bit that on `eager`; closed again, it is bit for
  bit what it was before (to 1e-6 if eager itself does not repeat its output). Where eager computes
  another function than the fused attention that the model came with (Falcon with alibi, Kosmos-2),
  it is that of the model as it was found, up to rounding, and the note says so.
- The tap saw every map that transformers returns on `eager` with `output_attentions=True`, in the
  same order, to 1e-6. What is returned under that name but is not attention
  (SqueezeBERT's scores, the states of MiniMax' linear attention) is left out; windows are next to
  the batch, as MobileViT gives them. WavLM returns the mean of its heads, and BigBird one of the
  weights of a block that a row sees several times: theirs is compared with what that makes of ours.
- The tap saw as many attentions as transformers returns or, if it returns fewer, as there were
  fused attentions and softmaxes of three or more axes (except those over the vocabulary). One
  softmax over two streams (T5Gemma 2) counts as two.
- An edit that changes nothing moves the output by no more than 1e-6 of the largest output (or 1e-11
  in double precision, where rounding is to blame). Uniform attention changes it, unless making
  every softmax even, without a tap, does not change it either.
- Gradients are finite and reach every site on which the output depends.

**No softmax attention** means that the forward pass runs no softmax of three or more axes over more
than one element, no fused attention, and (Reformer, MRA) no softmax written by hand. The **share**
is that of all other types; types that are refused or could not be built count as not opened.

Models that also take pictures or sound get only text, unless text is not enough; the
notes say how many of their attention modules did not run. LayoutLMv2 and Gemma 3n are built without
the modules that come from other libraries (convolutions of detectron2, a vision tower of timm).

## Refused, or not built

{refused}

## transformers {version}

{table}
{others}"""


def with_versions(new: str, old: str) -> str:
    """The page with the table of versions (scripts/versions.py) that was there before."""
    table = re.search("<!-- versions -->.*?<!-- end of versions -->", old, re.S)
    empty = "<!-- versions -->\n<!-- end of versions -->"
    return new if table is None else new.replace(empty, table[0])


def page(survey: Survey, others: Sequence[Survey] = ()) -> str:
    """The page for one version, with what differs in others."""
    closed = [row for row in survey.rows if row.verdict in ("refused", "not built", "wrong")]
    refused = [f"- `{row.kind}`: {describe(row)}" for row in sorted(closed, key=lambda r: r.kind)]
    return PAGE.format(
        summaries="\n".join([*HEAD, *(each.summary() for each in (survey, *others))]),
        refused="\n".join(refused),
        version=survey.transformers,
        table=survey.table(),
        others="".join(
            f"\n## Differences in transformers {each.transformers}\n\n{each.differences(survey)}\n"
            for each in others
        ),
    )


def read(path: Path) -> Survey:
    """Read a survey that was printed with `--json`."""
    found = json.loads(path.read_text())
    return Survey(found["transformers"], found["torch"], [Row(**row) for row in found["rows"]])

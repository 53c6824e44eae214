"""Catalogue: what the sources of built-in parts say of them, before anything heavy is imported.

A registry imports a part, and with it torch, which takes seconds. Names, options and summaries
stand in the source of each part as plain values; here they are read from there.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from attlas.errors import UnknownNameError

FAMILIES = {  # of methods
    "W": "W: the attention weights alone",
    "V": "V: weights with values or gradients",
    "P": "P: propagation through the whole model",
    "reference": "references that use no attention",
}

# What explains where no method is named: the first that runs on the model (docs/methods/README.md).
BEST_METHODS = ("attn_lrp", "gradient_attention")
QUICK_METHODS = (  # of an audit that is to be quick
    *("raw_attention", "attention_rollout", "effective_attention"),
    *("value_weighted_attention", "gradient_attention", "generic_relevance", "attn_lrp"),
    *("gradient", "input_x_gradient", "random_scores"),
)
SCOPES = ("readout", "layer", "all", "token")  # of trials
REMOVALS = ("delete", "mask", "pad", "zero_embedding", "knock_out")  # of tokens
VARIANTS = ("published", "released")  # of the attribution tree
HOMES = {  # of the registry of each kind of parts
    "method": "attlas.methods",
    "measure": "attlas.measures",
    "trial": "attlas.trials",
    "objective": "attlas.objectives",
    "ranking": "attlas.heads.rankings",
    "study": "attlas.studies",
}


@dataclass(frozen=True)
class PartFacts:
    """A part as its source describes it."""

    name: str
    record: Mapping[str, Any]  # the fields of its decorator that are plain values
    options: Mapping[str, Any]  # its keyword-only parameters with their defaults
    summary: str  # the first line of its docstring
    described: Mapping[str, str]  # what its docstring says of options, by name


@cache
def catalogue(kind: str) -> Mapping[str, PartFacts]:
    """The parts of a kind (`method`, `measure`, `trial`, `study`) of Attlas itself, by name."""
    folder = files("attlas").joinpath(_plural(kind))
    sources = sorted(each.name for each in folder.iterdir() if each.name.endswith(".py"))
    found = {}
    for source in sources:
        name = source.removesuffix(".py")
        if name != "__init__":
            found[name] = _read(name, folder.joinpath(source).read_text(encoding="utf-8"))
    return MappingProxyType(found)


def known_names(kind: str) -> list[str]:
    """The names of all parts of a kind (`ranking`, of heads, is one too), our own first.

    What other packages add and nobody has loaded is named as they offer it.
    """
    registry = getattr(sys.modules.get(HOMES[kind]), _plural(kind).upper(), None)
    if registry is not None:
        names: list[str] = registry.names()
        return names
    return _built_in(kind) + sorted(entry_points(group=f"attlas.{_plural(kind)}").names)


def _plural(kind: str) -> str:
    return "studies" if kind == "study" else f"{kind}s"


def has_more(kind: str) -> bool:
    """Whether there are parts of this kind that do not come with Attlas."""
    return len(known_names(kind)) > len(_built_in(kind))


def what_it_gives(signed: bool, of: str | None, maps: str | None) -> str:
    """What a method returns, in a few words."""
    sign = "signed scores" if signed else "scores"
    about = f"of the target's {of}" if of else "whatever the target"
    kinds = {"sites": ", a map for each head", "all": ", one map over the whole model"}
    return f"{sign} {about}{kinds.get(maps or '', '')}"


def check_names(kind: str, names: Iterable[str]) -> None:
    """Refuse a name that no part of this kind has."""
    known = known_names(kind)
    for name in names:
        if name.replace("-", "_") not in known:
            raise UnknownNameError(kind, name, known)


def check_word(kind: str, word: str, known: Iterable[str]) -> None:
    """Refuse a word that is not one of those known."""
    if word not in known:
        raise UnknownNameError(kind, word, list(known))


def check_rankings(names: Iterable[str]) -> None:
    """Refuse a name that no ranking of heads has."""
    known = known_names("ranking")
    for name in names:
        if name.replace("-", "_") not in known:
            raise UnknownNameError("ranking of heads", name, known)


def _built_in(kind: str) -> list[str]:
    if kind != "ranking":
        return list(catalogue(kind))
    source = files("attlas").joinpath("heads", "rankings.py").read_text(encoding="utf-8")
    made = [each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)]
    return [each.name for each in made if any(map(_is_ranking, each.decorator_list))]


def _is_ranking(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "ranking"


def known_options(kind: str, name: str) -> Mapping[str, Any] | None:
    """The options of a part by its name; None if it does not come with Attlas."""
    check_names(kind, [name])
    facts = catalogue(kind).get(name.replace("-", "_"))
    return None if facts is None else facts.options


def _read(name: str, source: str) -> PartFacts:
    tree = ast.parse(source)
    constants = dict(_constants(tree))
    (function,) = (
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name
    )
    (made,) = (each for each in function.decorator_list if isinstance(each, ast.Call))
    fields = {each.arg: _value(each.value, constants) for each in made.keywords if each.arg}
    record = {field: value for field, value in fields.items() if value is not None}
    parameters = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    options = {each.arg: _value(default, constants) for each, default in parameters}
    told = (ast.get_docstring(function) or "").strip()
    return PartFacts(name, record, options, told.splitlines()[0], dict(_described(told)))


def _described(docstring: str) -> Iterator[tuple[str, str]]:
    """The options under `Args:`, each with what is said of it."""
    _, _, below = docstring.partition("Args:\n")
    for each in re.split(r"^    (?=\w)", below.partition("\n\n")[0], flags=re.MULTILINE):
        name, colon, words = each.partition(":")
        if colon:
            yield name.strip(), " ".join(words.split())


def _constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for each in tree.body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            try:
                yield each.targets[0].id, ast.literal_eval(each.value)
            except ValueError:
                continue


def _value(node: ast.expr | None, constants: Mapping[str, Any]) -> Any:
    """A plain value; None if it is anything else."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None

"""The plans of what is asked about heads: importance, curves, redundancy, triggers and trees."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from attlas.catalogue import VARIANTS, check_word
from attlas.data import ReadData, read_examples
from attlas.errors import UnknownNameError, UsageError
from attlas.explaining.plan import Plan
from attlas.heads.curves import RANKED, SHARES
from attlas.heads.labelled_questions import ask_about_labels
from attlas.heads.rankings import RANKINGS
from attlas.heads.site_attribution import check_one_stack
from attlas.heads.triggers import CANDIDATES
from attlas.methods import METHODS, Method
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.encoding.text_inputs import is_one_text
from attlas.models.subject import Subject, check_subject
from attlas.planning.costs import Expense, Speed, make_plan, pose_sample, speed_of

COLUMNS = ("text", "pair", "label", "spans", "split", "count")
TRIED = 4  # texts whose labels are tried on the model
LIKE = {  # the method whose passes a ranking takes; the others are counted below
    "attattr": "attattr",
    "taylor": "gradient_attention",
    "taylor_michel": "gradient_attention",
    "attention": "raw_attention",
    "random": "random_scores",
}


def plan_importance(given: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """What `head_importance` would take."""
    subject, by = given["subject"], given["by"]
    check_subject(subject, "head_importance")
    known = RANKINGS[by].options
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of {RANKINGS[by].name}", name, known)
    read = _labelled(given, "head_importance")
    _try_labels(subject, read, given["truncate"])
    questions, scale = _questions(subject, read, given["truncate"])
    costs = {by: _ranking(speed_of(subject), questions, by, {**known, **options}).times(scale)}
    return make_plan("head_importance", subject, questions, costs, _hungriest([by]), scale=scale)


def plan_curve(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `prune_curve` would take."""
    subject = given["subject"]
    check_subject(subject, "prune_curve")
    names = _rankings(given["by"] or RANKINGS.names())
    if given["draws"] < 1:
        raise UsageError(f"draws must be at least 1, not {given['draws']}")
    ranked = _labelled({**given, "data": given["rank_on"]}, "prune_curve")
    _try_labels(subject, ranked, given["truncate"])
    tried = len(ranked.examples) - min(RANKED, len(ranked.examples) // 2)
    if given["try_on"] is not None:
        tried = len(_labelled({**given, "data": given["try_on"]}, "prune_curve").examples)
        to_rank = len(ranked.examples)
    else:
        to_rank = len(ranked.examples) - tried
    questions, scale = _questions(subject, ranked, given["truncate"])
    drawn = max(sum(map(len, questions)), 1)
    speed, how = speed_of(subject), {"steps": given["steps"]}
    costs = {
        f"ranking by {name}": _ranking(speed, questions, name, how).times(to_rank / drawn)
        for name in names
    }
    orders = sum(given["draws"] if RANKINGS[name].control else 1 for name in names)
    pruned = sum((speed.in_batches(each, len(SHARES) * orders) for each in questions), Expense())
    costs["pruning"] = pruned.times(tried / drawn)
    method = _hungriest(names)
    return make_plan("prune_curve", subject, questions, _few(costs), method, scale=scale)


def plan_effectiveness(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `head_effectiveness` would take."""
    subject = given["subject"]
    check_subject(subject, "head_effectiveness")
    names = _rankings(given["by"])
    read = _labelled(given, "head_effectiveness")
    _try_labels(subject, read, given["truncate"])
    questions, scale = _questions(subject, read, given["truncate"])
    speed, how = speed_of(subject), {"steps": given["steps"]}
    ranked = sum((_ranking(speed, questions, name, how) for name in names), Expense())
    sets = 2 * len(names) * (1 + max(site.heads for site in subject.sites))
    pruned = sum((speed.in_batches(each, sets) for each in questions), Expense())
    costs = {"ranking": ranked.times(scale), "pruning": pruned.times(scale)}
    method = _hungriest(names)
    return make_plan("head_effectiveness", subject, questions, costs, method, scale=scale)


def plan_redundancy(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `head_redundancy` would take."""
    subject = given["subject"]
    check_subject(subject, "head_redundancy")
    data = given["data"]
    if not (subject.reads_images or subject.reads_pairs):
        read = read_examples(data, **{name: given[name] for name in COLUMNS})
        data = [each.text for each in read.examples]
    texts = list(data)
    request = Request(truncate=given["truncate"])
    questions, scale = pose_sample(subject, texts, [request] * len(texts), fills=False)
    speed, method = speed_of(subject), METHODS["raw_attention"]
    reading = sum((speed.of_method(each, method, {}) for each in questions), Expense())
    costs = {"reading": reading.times(2 * scale)}
    return make_plan("head_redundancy", subject, questions, costs, method, scale=scale)


def plan_triggers(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `triggers` would take."""
    subject = given["subject"]
    check_subject(subject, "triggers")
    for name in ("candidates", "extract_from", "draws"):
        if given[name] is not None and given[name] < 1:
            raise UsageError(f"{name} must be at least 1, not {given[name]}")
    check_one_stack(subject)
    read = _labelled(given, "triggers")
    _try_labels(subject, read, truncate=True)
    questions, scale = _questions(subject, read, truncate=True)
    drawn = max(sum(map(len, questions)), 1)
    texts = len(read.examples)
    cut = min(given["extract_from"], texts // 2)
    speed, method = speed_of(subject), METHODS["attattr"]
    how = {"steps": given["steps"]}
    reading = sum((speed.of_method(each, method, how) for each in questions), Expense())
    sets = (given["candidates"] or CANDIDATES) * (1 + given["draws"])
    trying = sum((speed.in_batches(each, sets) for each in questions), Expense())
    costs = {
        "finding triggers": reading.times(cut / drawn),
        "trying them": trying.times((texts - cut) / drawn),
    }
    return make_plan("triggers", subject, questions, costs, method, scale=scale)


def plan_tree(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `attribution_tree` would take."""
    subject, text, target = given["subject"], given["text"], given["target"]
    check_subject(subject, "attribution_tree")
    if not is_one_text(text):
        raise UsageError(f"attribution_tree takes one text, not a list of {len(text)}")
    check_word("variant", given["variant"], VARIANTS)
    check_one_stack(subject)
    what = Target.from_dict(target) if isinstance(target, Mapping) else target
    asked = {name: given[name] for name in ("contrast", "position", "chat", "truncate")}
    (question,) = subject.ask([text], Request(what, **asked))
    method = METHODS["attattr"]
    cost = speed_of(subject).of_method(question, method, {"steps": given["steps"]})
    asked_once = replace(question, maps=False)
    return make_plan("attribution_tree", subject, [asked_once], {"attattr": cost}, method)


def _labelled(given: Mapping[str, Any], verb: str) -> ReadData:
    asked = {name: given[name] for name in COLUMNS}
    return read_examples(given["data"], seed=given.get("seed", 0), **asked).labelled(verb)


def _try_labels(subject: Subject, read: ReadData, truncate: bool) -> None:
    """Raise an error if the model knows none of the first labels, or cannot be asked for any."""
    few = replace(read, examples=read.examples[:TRIED], left_out=[])
    ask_about_labels(subject, few, truncate=truncate)


def _questions(subject: Subject, read: ReadData, truncate: bool) -> tuple[list[Question], float]:
    texts = [each.text for each in read.examples]
    request = Request(truncate=truncate)
    questions, scale = pose_sample(subject, texts, [request] * len(texts), fills=False)
    return [replace(each, maps=False) for each in questions], scale


def _rankings(by: Sequence[str]) -> list[str]:
    if isinstance(by, str):
        raise UsageError(f"by must be a list of rankings, such as [{by!r}]")
    return list(dict.fromkeys(RANKINGS[name].name for name in by))


def _ranking(
    speed: Speed, questions: Sequence[Question], name: str, options: Mapping[str, Any]
) -> Expense:
    """One ranking of the heads on all texts: one of other packages is taken to be expensive."""
    if name == "accuracy_difference":
        heads = sum(site.heads for site in questions[0].subject.sites)
        return sum((speed.in_batches(each, heads / 2) for each in questions), Expense())
    method = METHODS[LIKE.get(name, "attattr")]
    own = {key: value for key, value in options.items() if key in method.options}
    return sum((speed.of_method(each, method, own) for each in questions), Expense())


def _hungriest(names: Sequence[str]) -> Method:
    """The method whose memory is like that of the ranking that takes most."""
    gradients = [name for name in names if LIKE.get(name) == "gradient_attention"]
    return METHODS["gradient_attention" if gradients else LIKE.get(names[0], "attattr")]


def _few(costs: Mapping[str, Expense]) -> dict[str, Expense]:
    """The costs in at most four parts: the smallest are told together."""
    largest = sorted(costs, key=lambda name: -costs[name].seconds)
    shown = {name: costs[name] for name in largest[:3]}
    rest = sum((costs[name] for name in largest[3:]), Expense())
    return {**shown, "all else": rest} if largest[3:] else shown

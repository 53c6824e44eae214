"""Audits small enough for a test, of models whose workings are known."""

from known_models import WEIGHTS, bag_of_words, text_of

import attlas

AIMS = ("comprehensiveness", "sufficiency")
REMOVALS = ("delete", "mask")
TRUTH = "input_x_gradient"  # in a bag of words: each word's weight, for the predicted class
READINGS = ("raw_attention", TRUTH)
# Where nothing hangs on what methods and measures find.
SMALLEST = {"methods": ("raw_attention",), "measures": ("sufficiency",), "removal": ("mask",)}


def bag_texts(count, start=0):
    """Texts of four or five different words of the bag."""
    return [text_of(4 + number % 2, start + number, WEIGHTS) for number in range(count)]


def small_audit(subject=None, data=None, methods=READINGS, measures=AIMS, **asked):
    """An audit of the bag of words, or of another model, with few shuffles and no trials."""
    given = {"trials": [], "removal": REMOVALS, "shuffles": 2, **asked}
    chosen = bag_of_words() if subject is None else subject
    return attlas.audit(chosen, bag_texts(6) if data is None else data, methods, measures, **given)


def without_times(report):
    """Everything in a report except the times."""
    return {
        name: value for name, value in report.to_dict().items() if name not in ("seconds", "costs")
    }

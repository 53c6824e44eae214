"""Texts of a bag of words in numpy: a model whose right order of tokens is known.

The model answers sigmoid(offset + Σ weights of the present tokens). Masking removes weights;
deleting also makes the rest count more, as a mean over tokens would. Under both, the best order is
by weight, so the ceiling needs no search.
"""

import numpy as np

from attlas.mathematics.standing import MeasuredValues

REMOVALS = ("delete", "mask")


class Bag:
    """One text: the weights of its tokens."""

    def __init__(self, random, tokens=12, offset=-1.0, scale=1.0):
        self.weights = scale * np.sort(random.normal(0.4, 1.0, size=tokens))[::-1]
        random.shuffle(self.weights)
        self.offset = offset

    def probability(self, present, removal):
        """The probability for each set of tokens that stay, `[set, token]`."""
        total = present @ self.weights
        if removal == "delete":
            total = total * (1 + 0.5 * (1 - present.mean(axis=-1)))
        return 1 / (1 + np.exp(-(self.offset + total)))

    def reached(self, scores, removal):
        """Comprehensiveness and sufficiency of each row of scores, over every size."""
        count = len(self.weights)
        ranks = (-scores).argsort(axis=-1).argsort(axis=-1)
        sizes = np.arange(1, count)[:, None, None]
        top = ranks < sizes
        whole = self.probability(np.ones((1, count)), removal)
        without = self.probability((~top).astype(float), removal).mean(axis=0)
        alone = self.probability(top.astype(float), removal).mean(axis=0)
        return whole - without, whole - alone


def draw_reached(random, texts, methods, shuffles=20, **options):
    """What methods reach on random texts, by removal; a method is a function (bag, removal)."""
    values = {
        (removal, measure): {name: np.empty(texts) for name in ["shuffled", "ceiling", *methods]}
        for removal in REMOVALS
        for measure in range(2)
    }
    for text in range(texts):
        bag = Bag(random, tokens=int(random.integers(8, 16)), **options)
        null = random.random((shuffles, len(bag.weights)))
        for removal in REMOVALS:
            scores = [method(bag, removal) for method in methods.values()]
            found = bag.reached(np.stack([*null, bag.weights, *scores]), removal)
            for measure, figures in enumerate(found):
                own = values[removal, measure]
                own["shuffled"][text] = figures[:shuffles].mean()
                for name, figure in zip(["ceiling", *methods], figures[shuffles:], strict=True):
                    own[name][text] = figure
    return {
        removal: [
            MeasuredValues(own["shuffled"], own["ceiling"], {name: own[name] for name in methods})
            for (where, _), own in values.items()
            if where == removal
        ]
        for removal in REMOVALS
    }

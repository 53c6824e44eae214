"""Which heads follow which relation: by hand, and on a syntax made of a head's attention."""

import numpy as np
import pytest
import subjects
import torch

from attlas.data.files.conllu import Sentence
from attlas.errors import UnsupportedModelError, UsageError
from attlas.tokens import Tokens
from attlas.trials.head_patterns import head_patterns
from attlas.trials.reading.relations import between_words, follow_relations, guess_heads, members

WORDS = ("the", "film", "was", "not", "good", "cat", "sat", "dog", "kind", "my", "a")
LAYER, HEAD = 0, 1


def test_attention_to_a_word_is_summed_and_from_it_averaged():
    """[CLS] un ##kind dog: the first word has two tokens."""
    tokens = Tokens(
        ("[CLS]", "un", "##kind", "dog"),
        (None, (0, 2), (2, 6), (7, 10)),
        (True, False, False, False),
        ("text",) * 4,
        {"text": "unkind dog"},
        {"text": ((0, 6), (7, 10))},
    )
    member = members(tokens)
    assert member.tolist() == [[False, True, True, False], [False, False, False, True]]
    weights = torch.tensor(
        [[[1.0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], [0, 0.1, 0.2, 0.7], [0.5, 0.1, 0.2, 0.2]]]
    )
    expected = torch.tensor([[[(0.5 + 0.3) / 2, (0.1 + 0.7) / 2], [0.3, 0.2]]])
    torch.testing.assert_close(between_words(weights, member), expected)


def test_a_head_is_guessed_both_ways_and_never_the_word_itself():
    weights = torch.tensor([[[0.8, 0.1, 0.05], [0.2, 0.5, 0.3], [0.0, 0.0, 1.0]]])
    assert guess_heads(weights).tolist() == [[1, 2, -1], [1, 0, 1]]


def drawn(count, length=7):
    random = np.random.default_rng(0)
    return [tuple(random.choice(WORDS, length).tolist()) for _ in range(count)]


def most_attended(subject, model, words):
    """Of each word, the other word that one head gives most attention, in loops over tokens."""
    encoded = subject.tokenizer(" ".join(words), return_tensors="pt")
    with torch.no_grad():
        weights = model(**encoded, output_attentions=True).attentions[LAYER][0, HEAD]
    tokens = {word: [] for word in range(len(words))}
    for token, word in enumerate(encoded.word_ids(0)):
        if word is not None:
            tokens[word].append(token)
    assert max(map(len, tokens.values())) > 1  # some are split

    def between(one, other):
        sums = [sum(float(weights[i, j]) for j in tokens[other]) for i in tokens[one]]
        return sum(sums) / len(sums)

    return [
        max((j for j in tokens if j != i), key=lambda j, i=i: between(i, j))
        for i in range(len(words))
    ]


def sentences(subject, model):
    """Made so that `obj` is where one head looks most, and `det` the word after."""
    made = []
    for words in drawn(30):
        looks, last = most_attended(subject, model, words), len(words) - 1
        heads = [looks[i] if i % 2 else i + 1 for i in range(last)]
        relations = ["obj" if i % 2 else "det" for i in range(last)]
        made.append(Sentence(words, (*heads, -1), (*relations, "root")))
    return made


@pytest.fixture(scope="module")
def known():
    task = "sequence classification"
    subject = subjects.subject(task)
    return subject, sentences(subject, subjects.plain(task))


def test_the_head_that_a_syntax_was_made_of_is_found(known):
    subject, made = known
    found = {each.relation: each for each in follow_relations(subject, subject.sites[:1], made)}
    assert set(found) == {"obj", "det"}  # and never the root, which has no head
    obj, det = found["obj"], found["det"]
    assert obj.head == f"encoder.{LAYER} head {HEAD}" and obj.accuracy == 1
    assert obj.direction == "from the word to its head"
    truth = [(i, s.heads[i]) for s in made for i, name in enumerate(s.relations) if name == "obj"]
    shares = [np.mean([head - i == step for i, head in truth]) for step in range(-6, 7)]
    assert obj.offset_accuracy <= max(shares) + 0.15 and obj.beyond
    assert det.offset == 1 and det.offset_accuracy == 1
    assert det.gain <= 0 and not det.beyond
    assert obj.words + det.words == 15 * 6  # of half of the sentences


def written(path, made):
    lines = []
    for each in made:
        rows = zip(each.words, each.heads, each.relations, strict=True)
        for number, (word, head, relation) in enumerate(rows, 1):
            fields = [str(number), word, "_", "_", "_", "_", str(head + 1), relation, "_", "_"]
            lines.append("\t".join(fields))
        lines.append("")
    path.write_text("\n".join(lines))
    return str(path)


def test_a_file_joins_the_trial(known, tmp_path):
    subject, made = known
    tried = head_patterns(subject.ask(["a cat sat"]), conllu=written(tmp_path / "x.conllu", made))
    assert "heads follow 1 better than a fixed distance does: obj" in tried.sentence
    assert [each["relation"] for each in tried.details["relations"] if each["beyond"]] == ["obj"]
    table = tried.plots[-1]
    assert table["title"] == "Heads and syntactic relations" and table["rows"][0][0] == "obj"
    # Nothing reads the rows of the last layer but the first, so its heads follow nothing.
    last = subject.sites[-1].name
    assert not any(each["head"].startswith(last) for each in tried.details["relations"])


def test_too_little_and_two_stacks_are_refused(known):
    subject, made = known
    with pytest.raises(UsageError, match="3 sentences are too few"):
        follow_relations(subject, subject.sites, made[:3])
    with pytest.raises(UsageError, match="two sentences that the model can read, not 1"):
        follow_relations(subject, subject.sites, made[:1])
    writes = subjects.subject("sequence to sequence")
    with pytest.raises(UnsupportedModelError, match="a model with one stack"):
        follow_relations(writes, writes.sites, made)

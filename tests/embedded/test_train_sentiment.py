"""How the embedded sentiment model is made: no leaks, the same again, and each stage in short."""

import gzip
import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

from attlas.embedded.training import sentiment_augment as augmenting
from attlas.embedded.training.sentiment_data import (
    TrainingText,
    contained,
    first_of_each,
    held_out_texts,
    letters,
    made_sentences,
    read_rows,
    shipped,
    without_leaks,
    write_rows,
)
from attlas.embedded.training.sentiment_figures import SENTENCES, accuracies
from attlas.embedded.training.sentiment_grammar import (
    GENERAL,
    Construction,
    Domain,
    comparison,
    contrast,
    grammar_rows,
    negation,
    plainly,
)
from attlas.embedded.training.sentiment_tokenizer import (
    CLASS,
    MASK,
    PAD,
    SEPARATOR,
    continuations,
    learn_pieces,
    load_tokenizer,
    pack,
    train_tokenizer,
)
from attlas.embedded.training.sentiment_training import SentimentPace, batches, hide
from attlas.embedded.training.train_sentiment import main, untrained

TEXTS = [
    "a warm and funny film that never forgets its people",
    "dull , dull , dull",
    "an honest story told without tricks by people who care",
    "I could have left after ten minutes and missed nothing at all",
]
HELD_OUT = "the harbour at night is worth the price of the ticket"


@pytest.fixture
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, 150)


def row(text: str, origin: str = "") -> TrainingText:
    return TrainingText("set", text, 0.5, origin)


def test_a_text_that_holds_a_held_out_one_is_dropped() -> None:
    leak = row("I say: The Harbour, at night, is worth the price of the ticket!! Go.")
    kept, dropped = without_leaks([row(TEXTS[0]), leak], [HELD_OUT])
    assert (kept, dropped) == ([row(TEXTS[0])], [leak])


def test_a_text_edited_from_a_held_out_one_is_dropped() -> None:
    edited = row("the harbour at night is not worth the price of the ticket", HELD_OUT)
    assert without_leaks([edited], [HELD_OUT])[0] == []


def test_a_long_piece_of_a_held_out_text_is_dropped_and_a_short_one_kept() -> None:
    long, short = row("at night is worth the price of the ticket"), row("worth the price")
    assert without_leaks([long, short], [HELD_OUT]) == ([short], [long])


def test_a_held_out_text_of_a_word_counts_only_as_equal() -> None:
    whole, part = row("Brilliant!"), row("a brilliant film")
    assert without_leaks([whole, part], ["brilliant ."]) == ([part], [whole])


def test_only_letters_are_compared() -> None:
    assert letters("It's 10 o'Clock -- NOW") == "itsoclocknow"
    assert contained({"a" * 16: ["a" * 16]}, "b" + "a" * 16) == {"a" * 16}


def test_repeated_texts_are_read_once() -> None:
    rows = [row("A film"), row("a film"), row("..."), row("another")]
    assert [each.text for each in first_of_each(rows)] == ["A film", "another"]


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [TrainingText("set", "café “quoted”", 0.2), TrainingText("set", "x", 0.98)]
    write_rows(rows, tmp_path / "rows.xz")
    assert read_rows(tmp_path / "rows.xz") == rows


def test_made_sentences_are_half_for_and_half_against_and_none_is_there_twice() -> None:
    made = list(made_sentences())
    counts = Counter((row.source, row.target) for row in made)
    assert set(counts) == set(product(("negation", "contrast", "comparison"), (0.0, 1.0)))
    assert set(counts.values()) == {25}
    assert len({letters(row.text) for row in made}) == len(made)
    for row in made:
        assert re.fullmatch(r"[A-Z][A-Za-z ,;:'-]+\.", row.text), row.text


def test_what_comes_with_the_model_is_not_learned(tmp_path: Path) -> None:
    held_out = list(held_out_texts(small_data(tmp_path)))
    rows = [row(f"They say: {each.text} So there.") for each in shipped()]
    assert len(rows) > 300
    assert without_leaks(rows, held_out)[0] == []


def test_accuracy_is_the_share_of_each_source_on_the_right_side(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    """A model that calls everything positive is right on what is positive."""
    write_rows(
        [TrainingText("sst2", "fine", 1), TrainingText("imdb", "poor", 0)], tmp_path / "examined.xz"
    )
    found = accuracies(always_positive(tokenizer), tokenizer, tmp_path, masked=True)
    balanced = ("reviews", "reviews_hard", "negation", "contrast", "comparison")
    masked = {f"sst2 masked {share}": 1.0 for share in (0.15, 0.3, 0.5)}
    assert found == {"sst2": 1.0, "imdb": 0.0} | masked | dict.fromkeys(balanced, 0.5)


def always_positive(tokenizer: Tokenizer) -> Any:
    model = untrained(tokenizer.get_vocab_size(), layers=1, heads=1)
    torch.nn.init.zeros_(model.classifier.weight)
    model.classifier.bias.data = torch.tensor([-1.0, 1.0])
    return model.eval()


def test_the_same_texts_give_the_same_pieces() -> None:
    assert learn_pieces(TEXTS, 150) == learn_pieces(TEXTS, 150)


def test_packed_texts_come_back_in_any_order(tokenizer: Tokenizer) -> None:
    packed, chosen = pack(tokenizer, TEXTS, chunk=3), torch.tensor([3, 0, 1])
    ids, present = packed.rows(chosen, int(packed.lengths.max()), PAD)
    for place, which in enumerate(chosen.tolist()):
        assert ids[place][present[place]].tolist() == tokenizer.encode(TEXTS[which]).ids
    assert set(ids[~present].tolist()) <= {PAD}


def test_words_are_masked_as_a_whole(tokenizer: Tokenizer) -> None:
    ids = torch.tensor([tokenizer.encode("unforgettable film untold").ids])
    continues = continuations(tokenizer)
    nothing, everything = (hide(ids, continues, torch.tensor([share])) for share in (0.0, 1.0))
    assert torch.equal(nothing, ids)
    assert set(everything[0].tolist()) == {CLASS, MASK, SEPARATOR}
    half = hide(ids, continues, torch.tensor([0.5]), torch.Generator().manual_seed(1))[0]
    inside = continues[ids[0]]
    before = torch.roll(half == MASK, 1)
    assert torch.equal((half == MASK)[inside], before[inside])


def test_batches_hold_every_text_once_and_keep_their_room() -> None:
    lengths = torch.tensor([3, 9, 4, 4, 12, 5])
    made = list(batches(lengths, rows=3, room=12, generator=torch.Generator().manual_seed(0)))
    assert sorted(index for chosen, _ in made for index in chosen.tolist()) == list(range(6))
    for chosen, longest in made:
        assert longest == lengths[chosen].max()
        assert len(chosen) == 1 or len(chosen) * longest <= 12


def test_the_rate_goes_up_and_down() -> None:
    pace = SentimentPace(steps=10, seconds=1.0, rate=1.0, rows=1, room=1)
    assert pace.rate_at(0.0) == 0
    assert pace.rate_at(0.05) == pytest.approx(1)
    assert pace.rate_at(1.0) == pytest.approx(0)


def test_the_same_seed_makes_the_same_texts() -> None:
    vocabulary = {word: place for place, word in enumerate({w for t in TEXTS for w in t.split()})}
    near = augmenting.near_words(vocabulary, torch.rand(len(vocabulary), 4))
    pools = augmenting.gather(
        [TrainingText("sst5", text, 0.5) for text in TEXTS]
        + [TrainingText("imdb", " ".join(TEXTS), 0.5)] * 2,
        near,
        frozenset({augmenting.fingerprint(TEXTS[1])}),
    )
    first, second = (augmenting.all_texts(pools, 200, 1) for _ in range(2))
    assert first == second
    assert TEXTS[0] in first
    assert TEXTS[1] not in first


def test_a_crop_is_a_run_of_words() -> None:
    words = TEXTS[0].split()
    for seed in range(20):
        crop = augmenting.cropped(words, Random(seed), fewest=2, most=4)
        assert 2 <= len(crop) <= 4
        assert " ".join(crop) in TEXTS[0]


def written(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as lines:
        lines.writelines(json.dumps(each) + "\n" for each in rows)


def small_data(folder: Path) -> Path:
    plain = [{"text": text, "label": place % 2} for place, text in enumerate(TEXTS)]
    examined = [{"text": f"{HELD_OUT} {place}", "label": place % 2} for place in range(4)]
    tree = {"tokens": TEXTS[0].split(), "label": 4, "phrase_labels": [[1, 4, 3]]}
    tree["token_labels"] = [2] * len(TEXTS[0].split())
    pair = plain[0] | {"revised_text": TEXTS[1], "revised_label": 1}
    marked = [each | {"label": "POS"} for each in plain]
    for name, train, tests in (
        ("sst2", plain, {"dev": examined}),
        ("sst5", [tree], {"dev": [{"tokens": HELD_OUT.split()}], "test": []}),
        ("imdb", [{"text": " . ".join(TEXTS), "label": 1}], {"test": examined}),
        ("imdb_cad", [pair], {"dev": [], "test": []}),
        ("eraser_movies", marked, {"val": [], "test": []}),
    ):
        for part, rows in {"train": train, **tests}.items():
            written(folder / name / f"{part}.jsonl.gz", rows)
    for part in ("50words", "100words", "200words", "part7"):
        written(folder / "yelp_hat" / f"{part}.jsonl.gz", [{"tokens": ["good", part], "label": 1}])
    return folder


def small_teacher(folder: Path) -> Path:
    tokenizer = train_tokenizer(TEXTS, 200)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), intermediate_size=32, **size)
    BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_sentences_of_the_grammar_are_the_same_again_and_none_is_among_those_that_measure() -> None:
    rows = grammar_rows(4000, seed=0)
    assert rows == grammar_rows(4000, seed=0)
    assert len({row.text.lower() for row in rows}) == 4000
    measured = {letters(row.text) for row in shipped()}
    assert not measured & {letters(row.text) for row in rows}
    assert 0.45 < sum(row.target > 0.5 for row in rows) / 4000 < 0.55


TINY = Domain(["film"], ["plot"], ["jokes"], (["dull"], ["funny"]), (["I left"], ["I stayed"]))
SIDES = [{*TINY.says[side], *TINY.happens[side], *GENERAL[side]} for side in (0, 1)]


def made_sentences_of(construct: Construction) -> list[tuple[str, int]]:
    return [(construct(TINY, side, Random(seed)), side) for seed in range(150) for side in (0, 1)]


def says(text: str, side: int) -> bool:
    return any(re.search(rf"\b{each}\b", text) for each in SIDES[side])


def test_a_plain_sentence_speaks_one_way() -> None:
    for text, side in made_sentences_of(plainly):
        assert says(text, side) and not says(text, 1 - side)


def test_a_negation_denies_the_other_side() -> None:
    denied = [text for text, side in made_sentences_of(negation) if says(text, 1 - side)]
    assert len(denied) > 100
    for text, side in made_sentences_of(negation):
        assert not any(f" {each}" in text for each in TINY.says[side])


def test_what_comes_after_but_decides_a_contrast() -> None:
    turned = [
        (text.split(" but ", 1)[1], side)
        for text, side in made_sentences_of(contrast)
        if " but " in text and "that does not" not in text
    ]
    assert len(turned) > 50
    for main_clause, side in turned:
        assert says(main_clause, side) and not says(main_clause, 1 - side)


def test_more_is_of_ones_own_side_and_less_of_the_other() -> None:
    more, less = r"\bmore ([\w-]+) than\b", r"\bless ([\w-]+) than\b|\bas ([\w-]+) as\b"
    found = 0
    for text, side in made_sentences_of(comparison):
        for pattern, own in ((more, side), (less, 1 - side)):
            for match in re.finditer(pattern, text):
                found += 1
                assert next(filter(None, match.groups())) in SIDES[own], text
    assert found > 20


@pytest.mark.slow
def test_every_stage_in_short(tmp_path: Path) -> None:
    corpus, texts, figures = tmp_path / "corpus", tmp_path / "texts", tmp_path / "figures.json"
    shared = f"--corpus {corpus} --base {small_teacher(tmp_path / 'base')}"
    teacher = tmp_path / "teacher"
    small = f"--data {small_data(tmp_path / 'data')} --grammar 8 --pieces 150 --reviews 4"
    main(f"prepare {small} --out {corpus}".split())
    main(f"teacher {shared} --out {teacher} --steps 2".split())
    main(f"augment {shared} --out {texts} --texts 30 --grammar 5".split())
    main(f"label --texts {texts} --teachers {teacher}".split())
    student = f"student --corpus {corpus} --texts {texts} --steps 2"
    main(f"{student} --out {tmp_path / 'sentiment'}".split())
    main(f"{student} --out {tmp_path / 'again'}".split())
    main(f"{student} --out {tmp_path / 'unmasked'} --no-mask".split())
    students = f"--students {tmp_path}/sentiment {tmp_path}/unmasked --teachers {teacher}"
    main(f"evaluate --corpus {corpus} {students} --out {figures}".split())
    main(f"card --figures {figures} --out {tmp_path / 'CARD.md'}".split())
    measured = json.loads(figures.read_text())
    assert measured["counts"]["read"]["sst2"] == 4
    kinds = {"reviews", "reviews_hard", "negation", "contrast", "comparison"}
    assert {*SENTENCES, *kinds} < set(measured["sentiment"])
    assert "{" not in (tmp_path / "CARD.md").read_text()
    assert measured["counts"]["used"]["grammar"] == 8
    assert load_tokenizer(tmp_path / "sentiment").get_vocab_size() <= 150
    first, again = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("sentiment", "again")
    )
    assert first == again

"""dates: every digit knows its source, and the built-in models copy from there."""

import json
import re
from datetime import date

import pytest
import torch
from safetensors import safe_open

import attlas
from attlas.data.generated.dates import (
    DAY_WORDS,
    FORMS,
    MONTHS,
    ending,
    generate,
    generate_for_training,
    is_held_out,
    other_digits,
    with_digit,
    write,
)
from attlas.embedded.checks.verify_dates import MINIMUM, rewrite, verify
from attlas.embedded.training.train_dates import FOLDER, make, write_examples
from attlas.models.facts.places import embedded_names

NAMES = ("dates", "dates_plain")


@pytest.fixture(scope="module", params=NAMES)
def subject(request):
    return attlas.load(request.param, device="cpu")


def cut(example, span):
    return example.text[span[0] : span[1]]


def test_the_same_seed_writes_the_same_dates():
    assert generate(30, 4) == generate(30, 4) != generate(30, 5)
    assert generate_for_training(30, 4) == generate_for_training(30, 4)


def test_the_spans_say_year_month_and_day():
    short = {month[:3]: index for index, month in enumerate(MONTHS, 1)}
    days = {word: index for index, word in enumerate(DAY_WORDS, 1)}
    for example in generate(500, 1):
        year, month, day = (cut(example, span) for span in example.spans)
        found = date(
            int(year),
            int(month) if month.isdigit() else short[month[:3]],
            int(day) if day.isdigit() else days[day],
        )
        assert found.isoformat() == example.label


def test_copied_digits_stand_at_their_sources():
    for example in generate(500, 1):
        sources = example.fields["sources"]
        assert [i for i, span in enumerate(sources) if span is None] == [4, 7]
        assert set(range(4)) <= set(example.fields["copied"])
        for place in example.fields["copied"]:
            assert cut(example, sources[place]) == example.label[place]


def loosely(text):
    """Without the weekday and the "rd" of "3rd", which a changed digit leaves as they were."""
    return re.sub(r"(?<=\d)(st|nd|rd|th)|^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b", "", text)


@pytest.mark.parametrize("form", FORMS)
def test_another_digit_at_the_source_gives_the_same_form_of_another_date(form):
    for day in (date(1987, 3, 3), date(2024, 2, 29), date(1999, 12, 31), date(1010, 10, 10)):
        example = write(day, form)
        for place in example.fields["copied"]:
            for digit in other_digits(example, place):
                changed = with_digit(example, place, digit)
                expected = write(date.fromisoformat(changed.label), form).text
                assert loosely(changed.text) == loosely(expected)


def test_no_two_dates_are_written_alike():
    days = [date.fromordinal(number) for number in range(693_596, 694_700)]
    texts = [write(day, form).text for form in FORMS for day in days if day.month != 5]
    assert len(set(texts)) == len(texts)


def test_endings_and_day_words():
    written = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 30th 31st"
    assert " ".join(f"{n}{ending(n)}" for n in map(int, re.findall(r"\d+", written))) == written
    assert len(DAY_WORDS) == 31 and DAY_WORDS[19:22] == (
        "twentieth",
        "twenty-first",
        "twenty-second",
    )


def test_no_held_out_date_is_trained_on():
    trained = {example.label for example in write_examples(5000, 0)}
    held_out = {example.label for example in generate(2000, 1)}
    assert not trained & held_out
    assert all(map(is_held_out, held_out)) and not any(map(is_held_out, trained))
    years = [int(label[:4]) for label in trained | held_out]
    assert 1000 <= min(years) < 1010 and 2990 < max(years) <= 2999


def test_the_embedded_models_copy_from_the_sources(subject):
    figures = verify(subject, count=50)
    assert figures.keys() == MINIMUM.keys()
    assert {name: value for name, value in figures.items() if value < MINIMUM[name]} == {}


def test_well_known_forms_are_read(subject):
    texts = ["3 March 1987", "March 3rd, 1987", "1987-03-03", "the third of March 1987"]
    assert rewrite(subject, texts) == ["1987-03-03"] * 4


@torch.no_grad()
def places_that_change(subject, text, place, character):
    states = []
    for each in (text, text[:place] + character + text[place + 1 :]):
        ids = subject.tokenizer(each, return_tensors="pt")["input_ids"]
        states.append(subject.model.get_encoder()(ids).last_hidden_state[0])
    return (states[0] != states[1]).any(-1).nonzero().flatten().tolist()


def test_only_the_full_encoder_mixes_places():
    text, place = "3 March 1987", 9
    plain = attlas.load("dates_plain", device="cpu")
    assert places_that_change(plain, text, place, "2") == [place + 1]
    full = attlas.load("dates", device="cpu")
    assert len(places_that_change(full, text, place, "2")) == len(text) + 2


def test_they_are_stock_models_that_can_be_explained(subject):
    config = json.loads((FOLDER / subject.name / "config.json").read_text())
    assert config["architectures"] == ["BartForConditionalGeneration"]
    assert subject.name in embedded_names() and config["dtype"] == "float32"
    kinds = {site.kind for site in subject.sites}
    assert kinds == {"decoder", "cross"} | ({"encoder"} if subject.name == "dates" else set())
    assert subject.predict("3 March 1987")["label"].item()


@pytest.mark.parametrize("name", NAMES)
def test_the_folders_are_small_and_half_precise(name):
    folder = FOLDER / name
    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        assert {weights.get_tensor(key).dtype for key in weights.keys()} == {torch.float16}  # noqa: SIM118
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1_500_000
    assert (folder / "CARD.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_recipe_saves_a_loadable_folder(tmp_path, name):
    figures = make(tmp_path, name=name, steps=5, examples=200, held_out=5)
    assert all(0 <= value <= 1 for value in figures.values())
    assert attlas.load(tmp_path, device="cpu").model.dtype == torch.float32

"""dates: a date as people write it, to be written as 1987-03-03.

The source of every digit of the answer is known. It is one digit that is copied, or a whole word or
number ("March" for 03, the single 3 of "3 March" for the 0 of 03). A digit counts as copied because
changing it in the text changes that digit of the answer and no other.
"""

from dataclasses import replace
from datetime import date
from random import Random
from zlib import crc32

from attlas.data.example import Example, Span

FIRST_YEAR, LAST_YEAR = 1000, 2999
HELD_OUT_OF = 10  # one date in ten is held out from training
FORMS = (
    "{day} {month} {year}",
    "{day} {short} {year}",
    "{day}{ending} {month} {year}",
    "{day}{ending} of {month}, {year}",
    "the {day}{ending} of {month} {year}",
    "the {word} of {month} {year}",
    "{month} {day}, {year}",
    "{short} {day} {year}",
    "{month} {day}{ending}, {year}",
    "{month} the {word}, {year}",
    "{weekday} {day} {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{two_day}-{short}-{year}",
    "{two_day}.{two_month}.{year}",
    "{year}-{two_month}-{two_day}",
    "{year}/{two_month}/{two_day}",
    "{year} {month} {day}",
    "{year}, {short} {two_day}",
)
_MONTHS = "January February March April May June July August September October November December"
_WEEKDAYS = "Mon Tue Wed Thu Fri Sat Sun"
_UNITS = "first second third fourth fifth sixth seventh eighth ninth"
_TEENS = (
    "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth "
    "nineteenth"
)
MONTHS = tuple(_MONTHS.split())
WEEKDAYS = tuple(_WEEKDAYS.split())
DAY_WORDS = (
    *_UNITS.split(),
    *_TEENS.split(),
    "twentieth",
    *(f"twenty-{unit}" for unit in _UNITS.split()),
    "thirtieth",
    "thirty-first",
)
TENS_OF_DAY = 8  # its position in the answer


def generate(count: int, seed: int) -> list[Example]:
    """Generate dates that are held out from training; the label has the form 1987-03-03.

    The spans are those of the year, the month and the day. `fields` holds "sources", the span that
    decides each character of the label (None for hyphens), and "copied", the positions in the label
    of the digits that are copied from a single digit.
    """
    return _generate(Random(seed), count, held_out=True)


def generate_for_training(count: int, seed: int) -> list[Example]:
    """Generate dates for training: like those of `generate`, but never the same ones."""
    return _generate(Random(f"training {seed}"), count, held_out=False)


def is_held_out(label: str) -> bool:
    """Whether a date is held out from training."""
    return crc32(label.encode()) % HELD_OUT_OF == 0


def _generate(random: Random, count: int, *, held_out: bool) -> list[Example]:
    examples: list[Example] = []
    while len(examples) < count:
        first, last = date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31)
        day = date.fromordinal(random.randint(first.toordinal(), last.toordinal()))
        form = random.choice(FORMS)
        if is_held_out(day.isoformat()) == held_out:
            examples.append(write(day, form))
    return examples


def write(day: date, form: str) -> Example:
    """Write a date in one of the forms, with the source of every digit."""
    text, places = _fill(form, _slots(day))
    spans = tuple(_find(places, *names) for names in (("year",), _MONTH_SLOTS, _DAY_SLOTS))
    sources = _sources(text, *spans)
    copied = tuple(
        place
        for place, span in enumerate(sources)
        if span is not None and span[1] - span[0] == 1 and _is_copied(place, spans[2])
    )
    return Example(text, day.isoformat(), spans, {"sources": sources, "copied": copied})


_MONTH_SLOTS = ("month", "short", "two_month")
_DAY_SLOTS = ("day", "two_day", "word")


def _slots(day: date) -> dict[str, str]:
    return {
        "year": str(day.year),
        "month": MONTHS[day.month - 1],
        "short": MONTHS[day.month - 1][:3],
        "two_month": f"{day.month:02}",
        "day": str(day.day),
        "two_day": f"{day.day:02}",
        "word": DAY_WORDS[day.day - 1],
        "ending": ending(day.day),
        "weekday": WEEKDAYS[day.weekday()],
    }


def ending(day: int) -> str:
    """Return the two letters after a day: 1st, 2nd, 3rd, 11th."""
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _fill(form: str, slots: dict[str, str]) -> tuple[str, dict[str, Span]]:
    """Fill the slots of a form, and locate each of them."""
    text, places = "", {}
    for piece in form.split("{"):
        name, closed, rest = piece.partition("}")
        if closed:
            places[name] = (len(text), len(text) + len(slots[name]))
            text += slots[name] + rest
        else:
            text += piece
    return text, places


def _find(places: dict[str, Span], *names: str) -> Span:
    return next(places[name] for name in names if name in places)


def _sources(text: str, year: Span, month: Span, day: Span) -> tuple[Span | None, ...]:
    """Return the span that decides each character of the answer."""
    digits = [(year[0] + i, year[0] + i + 1) for i in range(4)]
    return (*digits, None, *_two_digits(text, month), None, *_two_digits(text, day))


def _two_digits(text: str, span: Span) -> tuple[Span, Span]:
    """Return the sources of two digits: a digit each if both are written, else the whole."""
    start, stop = span
    if not text[start:stop].isdigit():
        return span, span
    return (start, start + 1), (stop - 1, stop)


def _is_copied(place: int, day: Span) -> bool:
    """Whether a digit is copied; the 0 before a single digit comes from it, but is no copy."""
    return not (place == TENS_OF_DAY and day[1] - day[0] == 1)


def other_digits(example: Example, place: int) -> list[str]:
    """Return the digits that can replace a copied one and still make a valid date."""
    label, (start, _) = str(example.label), example.fields["sources"][place]
    allowed = "123456789" if start == example.spans[2][0] else "0123456789"
    return [
        digit
        for digit in allowed
        if digit != label[place] and _is_date(label[:place] + digit + label[place + 1 :])
    ]


def _is_date(label: str) -> bool:
    try:
        return FIRST_YEAR <= date.fromisoformat(label).year <= LAST_YEAR
    except ValueError:
        return False


def with_digit(example: Example, place: int, digit: str) -> Example:
    """Replace a copied digit, in the text and in the label."""
    start, stop = example.fields["sources"][place]
    text, label = str(example.text), str(example.label)
    return replace(
        example,
        text=text[:start] + digit + text[stop:],
        label=label[:place] + digit + label[place + 1 :],
    )

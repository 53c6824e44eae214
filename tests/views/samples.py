"""Payloads to look at, made from nothing but arithmetic."""

import base64
import math
import random
import re
from typing import Any

import numpy as np

from attlas.results.support.pictures import picture_uri
from attlas.views.map_codes import site_section

HOSTILE = [
    "</script>",
    "<img src=x onerror=alert(1)>",
    "שלום",
    "🧑‍🚀",
    "e\u0301\u0323",
    "\n",
    "",
    "\x1b[31mred",
    "\u202eevil",
    "[bold]markup[/bold]",
    "&amp;",
    '"quoted"',
    "\u2028",
    "\ud800",
]


def explanation(pieces: list[str], **changes: Any) -> dict[str, Any]:
    """An explanation of some pieces of text, each a token and, unless changed, a word too."""
    tokens, words, source = [], [], ""
    for position, piece in enumerate(pieces):
        source += " " if source else ""
        start = len(source)
        source += piece
        score = round(math.sin(3 * position + 1) / (1 + position % 5), 4)
        tokens.append(token(piece, score, start=start, end=len(source)))
        words.append(word(piece, score, [position]))
    return {
        "kind": "explanation",
        "version": 1,
        "headline": "What speaks for POSITIVE?",
        "true_label": None,
        "attlas": "0.1.0",
        "model": "sentiment",
        "task": "sequence classification",
        "method": "gradient_attention",
        "signed": True,
        "paper": "arXiv:2005.00928",
        "reading": "",
        "options": {},
        "target": {
            "name": "POSITIVE",
            "quantity": "probability",
            "contrast": None,
            "value": 0.29,
        },
        "prediction": [
            {"label": "NEGATIVE", "probability": 0.71},
            {"label": "POSITIVE", "probability": 0.29},
        ],
        "tokens": tokens,
        "words": words,
        "sources": {"text": source},
        "pictures": [],
        "sinks": [],
        "notes": [],
        "code": "",
        "versions": {},
        "maps": None,
        **changes,
    }


def token(text: str, score: float, **changes: Any) -> dict[str, Any]:
    plain = {"special": False, "segment": "text", "start": None, "end": None}
    return {"text": text, "label": text, "score": score, **plain, **changes}


def word(text: str, score: float, positions: list[int], **changes: Any) -> dict[str, Any]:
    plain = {"special": False, "segment": "text", "positions": positions}
    return {"text": text, "score": score, **plain, **changes}


def film() -> dict[str, Any]:
    """A sentence with special tokens, a word of two tokens, notes, options and maps."""
    parts = [
        ("[CLS]", "[CLS]", 0.61, None),
        ("not", "not", -0.42, (0, 3)),
        ("a", "a", 0.02, (4, 5)),
        ("great", "great", 0.38, (6, 11)),
        ("film", "film", 0.09, (12, 16)),
        ("##s", "s", 0.05, (16, 17)),
        (",", ",", -0.01, (17, 18)),
        ("but", "but", 0.21, (19, 22)),
        ("I", "I", 0.03, (23, 24)),
        ("could", "could", 0.06, (25, 30)),
        ("not", "not", -0.11, (31, 34)),
        ("look", "look", 0.17, (35, 39)),
        ("away", "away", 0.27, (40, 44)),
        ("[SEP]", "[SEP]", -0.2, None),
    ]
    tokens = [
        token(
            text,
            score,
            label=label,
            special=span is None,
            start=span and span[0],
            end=span and span[1],
        )
        for text, label, score, span in parts
    ]
    alone = [i for i in range(len(tokens)) if i not in (4, 5)]
    words = [
        word(tokens[i]["label"], tokens[i]["score"], [i], special=tokens[i]["special"])
        for i in alone
    ]
    words.insert(4, word("films", 0.14, [4, 5]))
    return explanation(
        [],
        tokens=tokens,
        words=words,
        sources={"text": "not a great films, but I could not look away"},
        reading="A word in orange speaks for POSITIVE, one in blue against it.",
        notes=["The text was read as one sentence of 14 tokens."],
        options={"residual": 0.5, "layers": [0, 1, 2, 3]},
        versions={"torch": "2.11.0", "transformers": "5.18.0"},
        code='attlas.explain("sentiment", "not a great films, but I could not look away",\n'
        '               method="gradient_attention", target="POSITIVE")',
        maps=maps(14, layers=4, heads=6),
    )


def unsigned() -> dict[str, Any]:
    payload = film()
    for row in payload["tokens"] + payload["words"]:
        row["score"] = round(abs(row["score"]), 4)
    return {**payload, "signed": False, "method": "attention_rollout", "reading": "", "maps": None}


def pair() -> dict[str, Any]:
    """Two segments, question and context, with an answer as the target."""
    rows = {
        "question": _split("Who wrote the first algorithm ?"),
        "context": _split("Ada Lovelace wrote what is often called the first program , in 1843 ."),
    }
    tokens, words, sources = [], [], {}
    for segment, pieces in rows.items():
        text = ""
        for piece in pieces:
            text += " " if text else ""
            place = {"segment": segment, "start": len(text), "end": len(text) + len(piece)}
            score = round(abs(math.sin(7 * len(tokens) + 2)) ** 3 / 4, 4)
            words.append(word(piece, score, [len(tokens)], segment=segment))
            tokens.append(token(piece, score, **place))
            text += piece
        sources[segment] = text
    return explanation(
        [],
        tokens=tokens,
        words=words,
        sources=sources,
        signed=False,
        model="reader",
        task="question answering",
        method="attention_flow",
        prediction=[{"label": "Ada Lovelace", "probability": 0.93}],
        target={"name": "Ada Lovelace", "quantity": "logit", "contrast": None, "value": 11.42},
    )


def image(rows: int = 14, columns: int = 14) -> dict[str, Any]:
    """A grid of patches behind one special token."""
    tokens = [token("[CLS]", 0.2, special=True, segment="image")]
    for index in range(rows * columns):
        row, column = divmod(index, columns)
        distance = math.hypot(row - rows * 0.4, column - columns * 0.6)
        score = round(math.exp(-distance * distance / 12) / 10, 5)
        tokens.append(token(f"patch {row},{column}", score, segment="image"))
    return explanation(
        [],
        tokens=tokens,
        words=None,
        sources={},
        signed=False,
        headline="Why tabby cat?",
        pictures=[{"segment": "image", "grid": [rows, columns], "image": None}],
        model="vit-tiny",
        task="image classification",
        method="attention_rollout",
        prediction=[{"label": "tabby cat", "probability": 0.82}],
        target={"name": "tabby cat", "quantity": "probability", "contrast": None, "value": 0.82},
    )


def photograph(rows: int = 14, columns: int = 14, **changes: Any) -> dict[str, Any]:
    """Patches over their picture: a bright ball before a dark hill."""
    y, x = np.mgrid[0:224, 0:224] / 224
    ball = (y - 0.4) ** 2 + (x - 0.6) ** 2 < 0.03
    sky = np.stack([150 + 60 * y, 180 + 30 * y, 230 - 40 * y], axis=-1)
    hill = (y > 0.75 - 0.15 * np.sin(4 * x))[..., None]
    picture = np.where(hill, [52, 84, 48], sky)
    picture[ball] = [236, 202, 60]
    uri = picture_uri(picture.astype(np.uint8))
    seen = {"segment": "image", "grid": [rows, columns], "image": uri}
    return {**image(rows, columns), "pictures": [{**seen, **changes}]}


def captioned() -> dict[str, Any]:
    """A text and then a picture, read together."""
    asked = explanation(_split("what is in the sky ?"), signed=False)
    for row in asked["tokens"] + asked["words"]:
        row["score"] = round(abs(row["score"]) / 10, 4)
    seen = photograph(6, 6)
    patches = [row for row in seen["tokens"] if not row["special"]]
    start = len(asked["tokens"])
    words = [
        word(row["text"], row["score"], [start + i], segment="image")
        for i, row in enumerate(patches)
    ]
    joined = {"tokens": asked["tokens"] + patches, "words": asked["words"] + words}
    return {**seen, **joined, "sources": asked["sources"]}


PROMPT = "The capital of France is"
WRITTEN = " Paris. It lies on the Seine!"


def generation(prompt: str = PROMPT, written: str = WRITTEN, **changes: Any) -> dict[str, Any]:
    """What a model wrote after a prompt: every token owes most to the one before it."""
    tokens = [*_pieces(prompt, "text"), *_pieces(written, "output")]
    outputs = [i for i, row in enumerate(tokens) if row["segment"] == "output"]
    scores = np.zeros((len(outputs), len(tokens)), dtype="<f4")
    for row, place in enumerate(outputs):
        for column in range(place):
            scores[row, column] = abs(math.sin(5 * row + 3 * column)) / (place - column) / 2
    shown = {name: explanation([])[name] for name in ("version", "paper", "versions")}
    words = [word(row["label"], 0.0, [i], segment=row["segment"]) for i, row in enumerate(tokens)]
    return {
        **shown,
        "kind": "generation",
        "headline": f"Why “{written.strip()}”?",
        "model": "smol",
        "task": "causal lm",
        "method": "attention_rollout",
        "signed": False,
        "reading": "How much of what is written comes from each token.",
        "options": {"residual": 0.5},
        "tokens": tokens,
        "words": [{name: each[name] for name in each if name != "score"} for each in words],
        "sentences": _sentences(tokens),
        "sources": {"text": prompt, "output": written},
        "pictures": [],
        "outputs": outputs,
        "targets": [
            {**explanation([])["target"], "name": tokens[i]["text"], "value": 0.5 - 0.01 * i}
            for i in outputs
        ],
        "predictions": [
            [
                {"label": tokens[i]["text"], "probability": 0.5 - 0.01 * i},
                {"label": " the", "probability": 0.125},
            ]
            for i in outputs
        ],
        "shape": list(scores.shape),
        "data": base64.b64encode(scores.tobytes()).decode(),
        "sinks": [],
        "notes": ["The model stopped by itself."],
        "code": f"attlas.explain_generation(subject, {prompt!r})",
        **changes,
    }


def _pieces(text: str, segment: str) -> list[dict[str, Any]]:
    """The tokens of a text: words with the space before them, and marks."""
    rows = []
    for match in re.finditer(r" ?\w+| ?[^\w\s]|\s", text):
        start = match.end() - len(match.group().strip(" ") or " ")
        piece = token(match.group(), 0.0, segment=segment, start=start, end=match.end())
        piece["label"] = match.group().strip(" ")
        rows.append({name: piece[name] for name in piece if name != "score"})
    return rows


def _sentences(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    units: list[dict[str, Any]] = []
    for position, row in enumerate(tokens):
        ended = not units or units[-1]["text"][-1:] in ".!?"
        if ended or units[-1]["segment"] != row["segment"]:
            units.append(word("", 0.0, [], segment=row["segment"]))
            del units[-1]["score"]
        units[-1]["positions"].append(position)
        units[-1]["text"] = (units[-1]["text"] + row["text"]).strip()
    return units


def long(size: int = 1000, *, layers: int = 2, heads: int = 4) -> dict[str, Any]:
    stock = _split("the of film was and story slow but bright acting never dull ending I")
    chance = random.Random(0)
    payload = explanation([chance.choice(stock) for _ in range(size)])
    for row, unit in zip(payload["tokens"], payload["words"], strict=True):
        row["score"] = unit["score"] = round(chance.gauss(0, 1) ** 3 / 10, 5)
    return {**payload, "words": None, "maps": maps(size, layers=layers, heads=heads)}


def maps(size: int, *, layers: int, heads: int) -> dict[str, Any]:
    """Heads that look at themselves, at their neighbours, at the first token, or all about."""
    places = list(range(size))
    sites = [
        site_section(
            f"encoder.{layer}",
            ("encoder", layer),
            (places, places),
            np.stack([_head(size, layer, head) for head in range(heads)]),
        )
        for layer in range(layers)
    ]
    return {"signed": False, "shows": "attention", "sites": sites}


def _split(text: str) -> list[str]:
    return text.split()


def _head(size: int, layer: int, head: int) -> Any:
    kind = (head + layer) % 4
    noise = bytes(random.Random(100 * layer + head).randrange(20) for _ in range(997))
    table = bytearray((noise * (size * size // 997 + 1))[: size * size])
    for query in range(size):
        strong = {0: query, 1: max(0, query - 1), 2: 0, 3: (query * 7 + layer) % size}[kind]
        table[query * size + strong] = 127 - 5 * ((query + head) % 12)
    steps = np.frombuffer(bytes(table), np.uint8).reshape(size, size)
    return (np.where(steps == steps.max(), 255, 2 * steps) / 255) ** 2 * 0.93

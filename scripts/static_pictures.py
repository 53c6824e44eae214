"""Draws the static figures of the documentation: `python scripts/static_pictures.py [FOLDER]`."""

import sys
from pathlib import Path

import attlas

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SENTENCE = "The acting is superb, but the plot is boring and far too long."
DATE = "March 3rd, 1987"


def static_pictures(folder: Path) -> list[Path]:
    """Draw each figure into a folder, as PNG; returns the files."""
    subject = attlas.load()
    explained = attlas.explain(subject, SENTENCE, "gradient_attention", maps=True)
    written = attlas.explain_generation(attlas.load("dates"), DATE, max_new_tokens=10)
    tree = attlas.attribution_tree(subject, SENTENCE)
    drawn = {
        "figure_tokens": explained.plot(),
        "figure_bars": explained.plot("bars"),
        "figure_matrix": explained.plot("matrix", layer=-1, head=0),
        "figure_heads": explained.plot("heads"),
        "figure_lines": explained.plot("lines", layer=-1, head=[0, 1]),
        "figure_flow": explained.plot("flow"),
        "figure_generation": written.plot(),
        "figure_tree": tree.plot(),
    }
    paths = []
    for name, axes in drawn.items():
        paths.append(folder / f"{name}.png")
        axes.figure.savefig(paths[-1], dpi=200)
    return paths


if __name__ == "__main__":
    for path in static_pictures(Path(sys.argv[1]) if sys.argv[1:] else IMAGES):
        print(path)

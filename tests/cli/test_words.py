"""The words of a command again."""

from attlas.cli.words import words


def test_the_words_say_the_same_again():
    given = {
        **{"model": "a folder", "split": None, "count": 0, "quick": True, "truncate": False},
        **{"method": ["gradient", "alti"], "trial": [], "trust_remote_code": True},
    }
    assert words(given) == [
        *("--model", "a folder", "--count", "0", "--quick", "--method", "gradient"),
        *("--method", "alti", "--trust-remote-code"),
    ]

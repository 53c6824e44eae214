"""CoNLL-U: words with their heads; multiword tokens, empty nodes and comments are passed over."""

import gzip

import pytest

from attlas.data.files.conllu import Sentence, read_conllu
from attlas.errors import UsageError

FILE = """\
# sent_id = 1
# text = Don't sing
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\t_\t_\t3\taux:pass\t_\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_
3\tsing\tsing\tVERB\t_\t_\t0\troot\t_\t_
3.1\tsung\tsing\tVERB\t_\t_\t_\t_\t3:conj\t_


# a comment between two empty lines

1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_
"""


def row(number="1", head="0", fields=10):
    return "\t".join([number, "a", "_", "_", "_", "_", head, "root", "_", "_"][:fields])


def test_words_heads_and_relations(tmp_path):
    path = tmp_path / "two.conllu"
    for ending in ("\n", "\r\n"):
        path.write_bytes(FILE.replace("\n", ending).encode())
        assert read_conllu(path) == [
            Sentence(("Do", "n't", "sing"), (2, 2, -1), ("aux", "advmod", "root")),
            Sentence(("Yes",), (-1,), ("root",)),
        ]


def test_a_last_sentence_needs_no_empty_line(tmp_path):
    path = tmp_path / "open.conllu"
    path.write_text(FILE.rstrip("\n"))
    assert len(read_conllu(str(path))) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (row(fields=9), "line 1: 9 fields between tabs, not 10"),
        (row(number="2"), "line 1: word '2' with head '0', where word 1"),
        (row(head="_"), "line 1: word '1' with head '_'"),
        (row(head="2"), "before line 2: a head is not in the sentence"),
        ("# only a comment", "no sentence"),
    ],
)
def test_what_is_no_sentence_is_refused(tmp_path, line, message):
    path = tmp_path / "wrong.conllu"
    path.write_text(line)
    with pytest.raises(UsageError, match=message):
        read_conllu(path)


@pytest.mark.parametrize("content", [None, b"1\tword", gzip.compress(FILE.encode())[:-9]])
def test_a_file_that_cannot_be_read_is_one_line(content, tmp_path):
    path = tmp_path / "a.conllu.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_conllu(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("head", ["9" * 5000, "²", "١", "-1", ""])
def test_a_head_that_is_no_number_of_a_word(head, tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(f"1\tword\t_\t_\t_\t_\t{head}\tnsubj\t_\t_\n")
    with pytest.raises(UsageError, match="line 1") as caught:
        read_conllu(path)
    assert len(str(caught.value)) < 600

"""The examples in the docstrings of the verbs run and show what they say."""

import doctest
import inspect

import pytest

import attlas

VERBS = ["check", "explain", "explain_generation", "explain_to"]


@pytest.mark.parametrize("name", VERBS)
def test_the_example_in_the_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verb = inspect.unwrap(getattr(attlas, name))
    (example,) = doctest.DocTestFinder(recurse=False).find(verb, name, globs={})
    assert example.examples
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example)
    assert runner.failures == 0


@pytest.mark.parametrize("name", VERBS)
def test_the_docstring_describes_every_argument(name):
    verb = inspect.unwrap(getattr(attlas, name))
    missing = [
        each for each in inspect.signature(verb).parameters if f"{each}:" not in verb.__doc__
    ]
    assert missing == []

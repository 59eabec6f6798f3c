"""Many cases in one test: all are run, a failure names its case, fixtures are passed on."""

import inspect

import pytest
from each import each


def test_a_failure_names_its_case():
    seen = []

    @each(a=[1, 2], b=["x", "y"])
    def law(a, b):
        seen.append((a, b))
        assert a < 2

    with pytest.raises(AssertionError) as failed:
        law()
    assert failed.value.__notes__ == ["case 2 of 4: a=2, b='x'"]
    assert seen == [(1, "x"), (1, "y"), (2, "x")]


def test_rows_and_fixtures():
    seen = []

    @each("a, b", [(1, "x"), (2, "y")])
    def law(tmp_path, a, b):
        seen.append((tmp_path, a, b))

    assert list(inspect.signature(law).parameters) == ["tmp_path"]
    law(tmp_path=0)
    assert seen == [(0, 1, "x"), (0, 2, "y")]


def test_no_cases_are_no_test():
    with pytest.raises(AssertionError):
        each(a=[])(lambda a: None)

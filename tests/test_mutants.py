"""The list of deliberate faults is about the package as it is."""

import mutants


def test_every_mutant_names_a_line_of_the_package():
    assert mutants.stale(mutants.MUTANTS) == []

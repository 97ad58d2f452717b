"""How sure a number is: intervals, paired tests, comparisons, gates."""

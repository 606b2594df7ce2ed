"""Do the tests bite? Small changes of the code, each of which some test ought to notice: ``make mutants``."""

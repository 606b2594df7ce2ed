"""``python -m app.cli``: the command line without the console script."""

from app.cli import main

main()

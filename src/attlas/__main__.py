"""`python -m attlas`: the command line."""

from attlas.cli.main import main

main()

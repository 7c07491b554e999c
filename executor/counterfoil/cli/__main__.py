"""`python -m counterfoil.cli`: the command without its script on the path."""

from counterfoil.cli import main

main()

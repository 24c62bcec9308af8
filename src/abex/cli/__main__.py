"""``python -m abex.cli``."""

from abex.cli import main

main()

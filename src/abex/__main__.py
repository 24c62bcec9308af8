"""``python -m abex`` is the command ``abex``."""

from abex.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Real data are found where `$ABEX_DATA` says, else beside the repository."""

import os
from pathlib import Path

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("ABEX_DATA", str(BESIDE))

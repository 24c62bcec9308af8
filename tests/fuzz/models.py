"""Model files with one thing changed and all checksums right (`tests.boosting.forged_models`), loaded and asked everything."""

from __future__ import annotations

import functools
import io
import traceback
import warnings
import zipfile
from collections.abc import Iterator

from tests.boosting.forged_models import forge, originals, use
from tests.fuzz.damage import Rng, maybe_damaged, one
from tests.fuzz.outcomes import REFUSED, File, read_file


@functools.cache
def saved_models() -> list[dict[str, bytes]]:
    """Files of every kind of model, as members of their archives."""
    return list(originals())


def cases(rng: Rng) -> Iterator[File]:
    """Forged models, some of them with damaged bytes."""
    while True:
        members, _ = forge(one(rng, saved_models()), rng)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        yield File("m.abex", maybe_damaged(buffer.getvalue(), rng, 0.2))


def run(case: File) -> str:
    """Load the model and use it; scikit-learn may refuse the rows of a further fit in its own words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read_file(case, use)
        except ValueError as error:
            if "sklearn" in traceback.extract_tb(error.__traceback__)[-1].filename:
                return REFUSED
            raise

"""Which files of a run folder may be handed to a browser: a list of names, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

_SHOWN = re.compile(
    r"""
    (?: run\.yaml | manifest\.json | plan\.json | failures\.jsonl
      | scores\.(?:parquet|jsonl) | scorer\.npz | item_weights\.json
      | ranking\.(?:json|csv) | audit\.json | explain\.json
      | methods\.json | reliability\.json | item_gold\.json | report\.html
      | inputs/summary\.json
      | inputs/(?:queries|checklists|labels|votes|ratings)\.jsonl
      | inputs/responses/part-\d{1,9}\.parquet
      | ledger/part-\d{1,9}\.parquet | ledger/journal-\d{1,9}\.jsonl
    )
    """,
    re.VERBOSE | re.ASCII,
)


def shown_file(run: Path, name: str) -> Path | None:
    """Return the file of that name in the run's folder; None unless it is one to show.

    A link is never followed, wherever it leads: neither the file nor a folder on the way to it.

    >>> shown_file(Path("runs/demo"), "../other/run.yaml") is None
    True
    """
    if not _SHOWN.fullmatch(name):
        return None
    path = run / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return real if real == run.resolve() / name and real.is_file() else None

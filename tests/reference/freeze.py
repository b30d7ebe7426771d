"""Freeze what the reference runs give: `python tests/reference/freeze.py [NAME...]`.

Do this only after a change that was meant to change what users see. The files of an earlier version
(`frozen/cache`, `frozen/run` and what belongs to them) are made anew only by `--old-files`: they
stand for what users have on their disks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(names: list[str]) -> None:
    """Make the runs and write what they gave."""
    from reference.frozen import freeze, path_of
    from reference.runs import RUNS, make_old, seen_in

    if "--old-files" in names:
        names.remove("--old-files")
        with TemporaryDirectory() as home:
            make_old(Path(home))
    for name in names or RUNS:
        began = process_time()
        with TemporaryDirectory() as home:
            freeze(name, seen_in(name, Path(home)))
        size = path_of(name).stat().st_size
        sys.stdout.write(f"{name}: {size:,} bytes, {process_time() - began:.1f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])

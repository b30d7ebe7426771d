"""Freeze the results of the reference runs: `python tests/reference/freeze.py [NAME...]`.

Do this only after an intended change of what users see. The files of an earlier version
(`frozen/cache`, `frozen/run` and related files) represent what users have on their disks; only
`--old-files` writes them again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(names: list[str]) -> None:
    """Make the runs and write their results."""
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

"""Print the installed version of each package that RocketEval requires directly.

python .ci/versions.py
"""

from __future__ import annotations

import platform
import re
from importlib.metadata import requires, version


def main() -> None:
    """Print Python's version and those of the dependencies, without extras."""
    wanted = [line for line in requires("rocketeval") or () if "extra ==" not in line]
    names = [re.split(r"[^\w.-]", line)[0] for line in wanted]
    print(f"Python {platform.python_version()}:", *(f"{name} {version(name)}" for name in names))


if __name__ == "__main__":
    main()

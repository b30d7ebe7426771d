"""Progress of the sheets of a round: each part is named with the round it belongs to."""

from __future__ import annotations

from rocketeval.observing import Observer


class NamedParts(Observer):
    """Tells another observer everything, and puts a name before that of every part."""

    def __init__(self, told: Observer, name: str) -> None:
        self._told = told
        self._name = name
        # Whatever an observer can hear now or later is passed on; only parts are renamed.
        for heard in vars(Observer):
            if not heard.startswith("_") and heard != "part_began":
                setattr(self, heard, getattr(told, heard))

    def part_began(self, name: str, number: int, total: int) -> None:
        """Tell it with the name before it."""
        self._told.part_began(f"{self._name}, {name}", number, total)

"""Orders in which the same items can be asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from rocketeval.records import GradingTask

Order = Callable[[Sequence[GradingTask]], Sequence[GradingTask]]


def responses_shuffled(tasks: Sequence[GradingTask]) -> list[GradingTask]:
    """Return the tasks in random order, each complete."""
    mixed = list(tasks)
    random.Random(0).shuffle(mixed)
    return mixed


def items_shuffled(tasks: Sequence[GradingTask]) -> list[GradingTask]:
    """Return every item as a separate task, in random order."""
    single = [
        replace(task, key=task.key + bytes([place]), suffixes=(suffix,))
        for task in tasks
        for place, suffix in enumerate(task.suffixes)
    ]
    random.Random(0).shuffle(single)
    return single


ORDERS: dict[str, Order] = {
    "ours": lambda tasks: tasks,
    "responses shuffled": responses_shuffled,
    "items shuffled": items_shuffled,
}

"""What a command begins with: the pool that is there, or seeds and guidelines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocketeval.errors import ConfigError
from rocketeval.evolve.forms import forms_of, with_forms
from rocketeval.evolve.optimizer import Optimizer
from rocketeval.evolve.perspective import Origin, Pool
from rocketeval.evolve.pool_file import read_pool
from rocketeval.evolve.seeding import seed_pool
from rocketeval.stages.evolve.workshop import Workshop


@dataclass(frozen=True)
class Beginning:
    """The pool, and where it came from."""

    pool: Pool
    from_file: bool
    """Whether an earlier command left it."""
    people: int
    """Perspectives that people added."""
    new_people: int
    """Those of them that no command has looked at yet."""
    refused: tuple[str, ...]
    """What of the guidelines was not taken, in words."""


async def begin(workshop: Workshop, optimizer: Optimizer | None, rounds: int) -> Beginning:
    """Return the pool of the run after so many finished rounds; the seeds before the first."""
    path, settings = workshop.store.pool_path, workshop.settings
    if path.exists():
        return _from_file(Pool(with_forms(read_pool(path), settings.answers)), rounds)
    pool = seed_pool(settings.seeds, forms_of(settings.answers))
    refused: tuple[str, ...] = ()
    if settings.guidelines is not None and optimizer is not None:
        text = _guidelines(settings.guidelines)
        proposals = await workshop.decompose(optimizer, text, pool)
        pool, _ = pool.add(proposals.perspectives)
        refused = tuple(f"{each.text} ({each.why.value})" for each in proposals.dropped)
    return Beginning(pool, False, *_people(pool), refused)


def _from_file(pool: Pool, rounds: int) -> Beginning:
    """Leave out what belongs to a round that was not finished: its journal brings it again."""
    there = Pool(each for each in pool if each.round <= rounds or each.origin is Origin.PERSON)
    return Beginning(there, True, *_people(there), ())


def _people(pool: Pool) -> tuple[int, int]:
    added = [each for each in pool if each.origin is Origin.PERSON]
    return len(added), sum(each.importance is None for each in added)


def _guidelines(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"Cannot read the guidelines {path}: {error.strerror}.",
            hint="Check `evolve.guidelines`: a text file, relative to the config.",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"The guidelines {path} are not text in UTF-8.", hint="Save the file as UTF-8."
        ) from None

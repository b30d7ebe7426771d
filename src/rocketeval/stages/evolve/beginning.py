"""What a command begins with: the pool that is there, or seeds and guidelines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocketeval.errors import ConfigError
from rocketeval.evolve.forms import forms_of
from rocketeval.evolve.optimizer import Optimizer
from rocketeval.evolve.perspective import Origin, Pool
from rocketeval.evolve.seeding import seed_pool
from rocketeval.stages.evolve.limit import CallLimit
from rocketeval.stages.evolve.shared_pool import SharedPool
from rocketeval.stages.evolve.workshop import Workshop


@dataclass(frozen=True)
class Beginning:
    """The pool, and where it came from."""

    pool: Pool
    from_file: bool
    """Whether an earlier command left it."""
    new_people: int
    """Perspectives that people added and no command has looked at yet."""
    elsewhere: int
    """Those of them that name a round which this run has not done."""
    refused: tuple[str, ...]
    """What of the guidelines was not taken, in words."""


async def begin(
    workshop: Workshop,
    optimizer: Optimizer | None,
    shared: SharedPool,
    limit: CallLimit,
    rounds: int,
) -> Beginning:
    """Return the pool of the run after so many finished rounds; the seeds before the first.

    ConfigError if the limit of calls does not suffice for it, before it is paid for.
    """
    settings = workshop.settings
    if shared.path.exists():
        found = shared.read(rounds)
        limit.check_pool(found.pool)
        return Beginning(found.pool, True, _new_people(found.pool), found.elsewhere, ())
    pool = seed_pool(settings.seeds, forms_of(settings.answers))
    refused: tuple[str, ...] = ()
    if settings.guidelines is not None and optimizer is not None:
        text = _guidelines(settings.guidelines)
        limit.check_pool(pool, settings.attempts)
        proposals = await workshop.decompose(optimizer, text, pool)
        pool, _ = pool.add(proposals.perspectives)
        refused = tuple(f"{each.text} ({each.why.value})" for each in proposals.dropped)
    limit.check_pool(pool)
    return Beginning(pool, False, 0, 0, refused)


def _new_people(pool: Pool) -> int:
    return sum(each.origin is Origin.PERSON and each.importance is None for each in pool)


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

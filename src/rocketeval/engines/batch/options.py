"""What the config can say to a batch engine, under `options`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rocketeval.config import Section

MOST_REQUESTS = 50_000
"""In one input file, as documented."""
MOST_BYTES = 200_000_000


class BatchOptions(Section):
    """How requests are gathered into batches, and how often one is looked at."""

    max_requests: Annotated[int, Field(gt=0, le=MOST_REQUESTS)] = 49_000
    """Requests in one batch at most; fewer if the account may not queue so many tokens."""
    max_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] = 190_000_000
    """Bytes in one batch's file at most."""
    gather: Annotated[float, Field(ge=0)] = 2.0
    """Seconds without a new request after which a batch that is not full is sent."""
    poll: Annotated[float, Field(gt=0)] = 30.0
    """Seconds between two looks at an open batch."""
    completion_window: str = "24h"
    """How long the server may take; 24h is the only one the OpenAI API knows."""

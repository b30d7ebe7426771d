"""What the stages before the report left: the files a report is made from, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rocketeval.evolve.described import Described
from rocketeval.ranking.rank import Ranking
from rocketeval.stages.explain import item_weights
from rocketeval.stages.rank import read_ranking
from rocketeval.store.run import RunStore

SCORE_COLUMNS = ["query_id", "candidate", "score", "judgment"]

Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of a run; what no stage has made yet is None."""

    scores: pa.Table
    """With at least `SCORE_COLUMNS`, one row a response, queries together."""
    ranking: Ranking
    audit: Json | None = None
    explain: Json | None = None
    item_gold: Json | None = None
    weights: Mapping[str, list[float]] = field(default_factory=dict)
    """Of items, by query, where a scorer learned them."""
    manifest: Json = field(default_factory=dict)
    evaluator: Described | None = None
    """What an evolved evaluator is and found here, where one judged."""

    @property
    def stages(self) -> Json:
        """What the manifest says of each stage."""
        found: Json = self.manifest.get("stages", {})
        return found


def read_findings(store: RunStore) -> Findings:
    """Return what a run's stages found; StageMissing before it is ranked."""
    return Findings(
        scores=store.scores(SCORE_COLUMNS),
        ranking=read_ranking(store),
        audit=store.json_if_made("audit"),
        explain=store.json_if_made("explain"),
        item_gold=store.json_if_made("item_gold"),
        weights=item_weights(store),
        manifest=store.manifest(),
        evaluator=store.json_if_made("evaluator"),
    )

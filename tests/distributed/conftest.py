"""A real Ray cluster of two nodes, which ends with its tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from robustness.ray_cluster import LocalCluster, local_cluster

from support.needs import need


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A head and a node, with this process connected."""
    need("ray", "no ray here: pip install 'rocketeval[ray]'")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")
        import ray

        # Workers find it in their environment, as on a real cluster.
        patched.setenv("OPENAI_API_KEY", "sk-never-written-anywhere")
        with local_cluster(nodes=1) as started:
            ray.init(address=started.address, log_to_driver=False, logging_level="ERROR")
            yield started
            ray.shutdown()

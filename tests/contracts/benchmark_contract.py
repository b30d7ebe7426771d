"""The contract of every benchmark; subclass it and provide a `config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.benchmarks.base import BENCHMARKS, Benchmark, check_benchmark, open_benchmark
from rocketeval.benchmarks.load import imported_checklists, load
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError, ConfigError


class BenchmarkContract:
    """One suite for all: a subclass provides a fixture `config` of a small benchmark."""

    has_checklists = True
    """Whether the small benchmark has checklists of its own."""

    @pytest.fixture
    def benchmark(self, config: BenchmarkConfig) -> Benchmark:
        """Return the benchmark that the config describes."""
        return open_benchmark(config)

    def test_records_are_sound(self, benchmark: Benchmark) -> None:
        """Ids, references, winners and numbers are sound, and every method is repeatable."""
        check_benchmark(benchmark)

    def test_streams_can_be_read_in_parallel(self, benchmark: Benchmark) -> None:
        """Two readers of one method do not disturb each other."""
        pairs = zip(benchmark.responses(), benchmark.responses(), strict=True)
        assert all(one == other for one, other in pairs)

    def test_two_readers_agree(self, config: BenchmarkConfig) -> None:
        """The same files give the same records in the same order."""
        one, other = open_benchmark(config), open_benchmark(config)
        assert list(one.responses()) == list(other.responses())
        assert list(one.queries()) == list(other.queries())

    def test_passes_the_load_stage(self, config: BenchmarkConfig, benchmark: Benchmark) -> None:
        """Everything the benchmark yields is accepted."""
        loaded = load(benchmark, config)
        assert list(loaded.responses()) == list(benchmark.responses())
        assert list(loaded.labels()) == list(benchmark.labels())
        assert list(loaded.votes()) == list(benchmark.votes())
        assert list(loaded.ratings()) == list(benchmark.ratings())
        assert imported_checklists(benchmark) or not self.has_checklists

    def test_missing_folder_is_named(self, config: BenchmarkConfig, tmp_path: Path) -> None:
        """A missing folder is refused when the benchmark is opened."""
        absent = config.model_copy(update={"path": tmp_path / "absent"})
        with pytest.raises(BenchmarkError, match="absent"):
            open_benchmark(absent)

    def test_unknown_option_is_refused(self, config: BenchmarkConfig) -> None:
        """An option that the format does not know is an error."""
        options = {**config.options, "nonsense": 1}
        with pytest.raises(ConfigError, match="nonsense: there is no such setting"):
            open_benchmark(config.model_copy(update={"options": options}))

    def test_is_registered(self, config: BenchmarkConfig) -> None:
        """The config's kind leads to the class that reads it."""
        assert isinstance(open_benchmark(config), BENCHMARKS.get(config.kind))

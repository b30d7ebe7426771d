"""Weights are identified by content, even if a small part of a large file changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rocketeval.engines.tokenizer import SAMPLE_BYTES, SAMPLES, file_hash, folder_hash


def test_single_file_has_its_sha256(tmp_path: Path) -> None:
    """The value equals the one that hubs publish."""
    path = tmp_path / "judge.gguf"
    path.write_bytes(b"GGUF and weights")
    assert file_hash(path) == hashlib.sha256(b"GGUF and weights").hexdigest()


def test_every_shard_counts(tmp_path: Path) -> None:
    """The config names the first shard, and a change in any other is detected."""
    first, second = (tmp_path / f"judge-0000{n}-of-00002.gguf" for n in (1, 2))
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    before = file_hash(first)
    (tmp_path / "other-00002-of-00002.gguf").write_bytes(b"not a part of it")
    assert file_hash(first) == before
    second.write_bytes(b"changed")
    assert file_hash(first) != before


def test_folder_hash_covers_its_files(tmp_path: Path) -> None:
    """Name, size and content count; subfolders do not."""
    (tmp_path / "config.json").write_text("{}")
    before = folder_hash(tmp_path)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "checkpoint.bin").write_text("older")
    assert folder_hash(tmp_path) == before
    (tmp_path / "config.json").write_text("[]")
    assert folder_hash(tmp_path) != before


def test_retraining_changes_the_hash_of_a_large_file(tmp_path: Path) -> None:
    """Changes throughout the file reach the sampled places."""
    weights = bytearray(3 * SAMPLES * SAMPLE_BYTES)
    path = tmp_path / "model.safetensors"
    path.write_bytes(weights)
    before = folder_hash(tmp_path)
    weights[::4096] = b"\1" * len(weights[::4096])
    path.write_bytes(weights)
    assert folder_hash(tmp_path) != before

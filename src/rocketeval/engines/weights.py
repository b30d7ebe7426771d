"""What tells one set of weights from another under the same name."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SAMPLES = 256
SAMPLE_BYTES = 65536
_SHARD = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def file_hash(path: Path) -> str:
    """Return the sha256 of a weights file, and of its other parts where it is one of several."""
    hashes = [_sha256(part) for part in _parts(path)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def folder_hash(folder: Path) -> str:
    """Return a hash of a model folder: small files whole, of large ones 256 places.

    Training moves nearly every number of a checkpoint, so that places spread over the whole file
    notice it, in a fraction of the time that reading all of it takes.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        _add_samples(digest, path)
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add_samples(digest: hashlib._Hash, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= SAMPLES * SAMPLE_BYTES:
            digest.update(file.read())
            return
        for sample in range(SAMPLES):
            file.seek((size - SAMPLE_BYTES) * sample // (SAMPLES - 1))
            digest.update(file.read(SAMPLE_BYTES))


def _parts(path: Path) -> list[Path]:
    if not _SHARD.search(path.name):
        return [path]
    return sorted(path.parent.glob(_SHARD.sub(r"-*-of-\1.gguf", path.name)))

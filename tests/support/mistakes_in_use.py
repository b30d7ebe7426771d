"""Mistakes with servers, disks, runs and the command line."""

from __future__ import annotations

import json
import os
import resource
import socket
from typing import Any

import pytest

from fakes.openai_server import MODEL, status, without_logprobs
from rocketeval.store.files import write_json
from support.in_process import cli
from support.make import QUERIES
from support.mistakes import KEY, Mistake, Place


def http(**settings: Any) -> Any:
    """Return a function that makes the fake server the judge."""
    return lambda place: place.judged_over_http(**settings)


def answers(code: int, message: str, path: str = "/v1/chat/completions") -> Any:
    """Return a function that makes the judge's server answer with an error."""

    def make(place: Place) -> None:
        place.judged_over_http()
        place.server.always(path, status(code, message))

    return make


def unset_key(place: Place) -> None:
    answers(401, "You didn't provide an API key.", "/v1/models")(place)
    os.environ.pop(KEY)


def author_refused(place: Place) -> None:
    place.written_over_http()
    place.server.always("/v1/models", status(401, "Incorrect API key provided: ***."))


def no_logprobs(place: Place) -> None:
    place.judged_over_http()
    place.server.always("/v1/chat/completions", without_logprobs)


def too_long(place: Place) -> None:
    place.judged_over_http()
    place.server.rejects = "right explains the sea"


def all_too_long(place: Place) -> None:
    place.judged_over_http()
    place.server.rejects = "explains"


def author_too_long(place: Place) -> None:
    place.written_over_http()
    place.server.rejects = "Why the sea?"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


TAKEN = free_port()
"""A port that is free until a test uses it."""


def down(place: Place) -> None:
    place.judged_over_http(base_url=f"http://127.0.0.1:{TAKEN}/v1")


def without_v1(place: Place) -> None:
    place.judged_over_http(base_url=place.server.base_url.removesuffix("/v1"))


def wrong_scheme(place: Place) -> None:
    place.judged_over_http(base_url=place.server.base_url.replace("http:", "https:"))


SERVERS = (
    Mistake("No API key", unset_key, ("judge", KEY, "not set", "401"), code=4, asked=0),
    Mistake(
        "A wrong API key",
        answers(401, "Incorrect API key provided.", "/v1/models"),
        ("judge", KEY, "is set", "401", "Incorrect API key provided."),
        code=4,
        asked=0,
    ),
    Mistake(
        "A wrong API key for the author",
        author_refused,
        ("author", KEY, "is set", "401"),
        code=4,
        asked=0,
    ),
    Mistake(
        "No permission for log-probabilities",
        answers(403, "You are not allowed to request logprobs from this model"),
        ("not allowed to request logprobs", "403", "judge"),
        code=4,
        never=("no access to this model",),
    ),
    Mistake(
        "No credit left",
        answers(402, "Insufficient balance"),
        ("Insufficient balance", "402", "credit"),
        code=4,
    ),
    Mistake(
        "A model that is not served",
        http(model="fake-jugde"),
        ("'fake-jugde'", MODEL, "judge"),
        code=4,
        asked=0,
    ),
    Mistake(
        "A path that the server does not have",
        answers(404, "no such path"),
        ("404", "base_url", "/v1"),
        code=4,
    ),
    Mistake("An address without /v1", without_v1, ("/v1", "base_url"), code=4),
    Mistake("https for a server that speaks http", wrong_scheme, ("https", "http://"), code=4),
    Mistake("The judge is unreachable", down, ("judge", "reach", "server"), code=4),
    Mistake(
        "A server name that does not exist",
        http(base_url="http://judge.invalid/v1"),
        ("judge.invalid", "base_url"),
        code=4,
    ),
    Mistake("A server without log-probabilities", no_logprobs, ("log-probabilities",), code=4),
    Mistake(
        "A response that exceeds the context",
        too_long,
        ("right on sea", "too long", "characters", "larger context"),
        code=3,
        never=("run it again to retry",),
    ),
    Mistake(
        "All responses exceed the context",
        all_too_long,
        ("too long", "larger context"),
        code=4,
    ),
    Mistake(
        "A query that exceeds the author's context",
        author_too_long,
        ("no checklist for sea", "too long", "larger context"),
        code=3,
    ),
)


def powerless(place: Place, *, writable: bool = False) -> None:
    """Remove write permission, also from root by switching to another user."""
    for path in (place.folder, *place.folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    if os.geteuid() == 0:
        os.seteuid(65534)
        place.undo.callback(os.seteuid, 0)
        if not os.access(__file__, os.R_OK, effective_ids=True):
            pytest.skip("root may write everywhere, and no other user may read this checkout")
    else:
        for path in (place.folder, *place.folder.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
            place.undo.callback(path.chmod, 0o755 if path.is_dir() else 0o644)


def no_output(place: Place) -> None:
    place.written_over_http()
    place.config["output"] = "/proc/runs"


def output_is_a_file(place: Place) -> None:
    place.written_over_http()
    (place.folder / "runs").write_text("")


def no_cache(place: Place) -> None:
    place.written_over_http()
    place.judged_over_http()
    place.config["cache"] = "/proc/cache"


def no_longer_than(place: Place, size: int) -> None:
    """Limit the file size, which has the effect of a full disk on a growing file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    place.undo.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)


def full_while_authoring(place: Place) -> None:
    place.written_over_http()
    place.save_config()
    journal = place.folder / "runs" / ".cache" / "authored.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"\n" * (1 << 16))
    no_longer_than(place, 1 << 16)


def full_while_grading(place: Place) -> None:
    items = [f"Is it number {number}?" for number in range(100)]
    place.rows("checklists.jsonl", *({"query_id": q, "items": items} for q in QUERIES))
    place.save_config()
    no_longer_than(place, 16_000)


def full_while_scoring(place: Place) -> None:
    place.finish()
    no_longer_than(place, 300)


def read_only_run(place: Place) -> None:
    place.finish()
    # Without write permission imports may fail too, so import everything first.
    cli(place.folder, "compare", "left", "right")
    cli(place.folder, "explain", "--candidate", "left")
    powerless(place)


DISKS = (
    Mistake(
        "An output folder that cannot be written",
        no_output,
        ("/proc/runs", "output"),
        code=5,
        asked=0,
    ),
    Mistake(
        "The output folder is a file",
        output_is_a_file,
        ("runs", "output"),
        code=5,
        asked=0,
    ),
    Mistake(
        "A cache that cannot be written",
        no_cache,
        ("/proc/cache", "cache"),
        code=5,
        asked=0,
    ),
    Mistake(
        "The disk is full while the author writes",
        full_while_authoring,
        ("File too large", "authored.jsonl", "again"),
        code=5,
    ),
    Mistake(
        "The disk is full while the judge answers",
        full_while_grading,
        ("judgment", "again"),
        code=5,
    ),
    Mistake(
        "The disk is full while scoring",
        full_while_scoring,
        ("File too large", "demo", "again"),
        code=5,
        command=("run", "--only", "score"),
    ),
    Mistake(
        "Compare in a folder that cannot be written",
        read_only_run,
        ("left", "right"),
        command=("compare", "left", "right"),
        code=0,
    ),
    Mistake(
        "Explain in a folder that cannot be written",
        read_only_run,
        ("left",),
        command=("explain", "--candidate", "left"),
        code=0,
    ),
    Mistake(
        "Audit in a folder that cannot be written",
        read_only_run,
        ("runs/demo", "cannot be written"),
        command=("audit",),
        code=5,
    ),
    Mistake(
        "Run again in a folder that cannot be written",
        read_only_run,
        ("cannot be written",),
        code=5,
    ),
)


def other_judge(place: Place) -> None:
    place.finish()
    place.config["judge"]["model"] = "another"
    place.save_config()


def damaged(name: str, content: bytes = b"{ no") -> Any:
    """Return a function that damages a file of a finished run."""

    def make(place: Place) -> None:
        place.finish()
        (found,) = place.run.glob(name)
        found.write_bytes(content)

    return make


def newer(name: str) -> Any:
    """Return a function that sets a file of the run to a newer schema, as a newer version would."""

    def make(place: Place) -> None:
        place.finish()
        path = place.run / name
        write_json(path, {**json.loads(path.read_text()), "schema": 99})

    return make


def half_deleted(*names: str) -> Any:
    """Return a function that deletes some files of a finished run."""

    def make(place: Place) -> None:
        import shutil

        place.finish()
        for name in names:
            path = place.run / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return make


def ran(place: Place) -> None:
    place.finish()


def changed_benchmark(place: Place) -> None:
    place.finish()
    place.rows("responses/left.jsonl", {"query_id": "sky", "text": "Another."})


RUNS = (
    Mistake(
        "Another judge in the same run", other_judge, ("'scripted' -> 'another'", "name"), code=5
    ),
    Mistake(
        "A damaged manifest",
        damaged("manifest.json"),
        ("manifest.json", "damaged", "rocketeval run"),
        command=("run", "--only", "rank"),
        code=5,
    ),
    Mistake(
        "A damaged part of the ledger",
        damaged("ledger/part-*.parquet"),
        ("part-000001.parquet", "damaged", "rocketeval repair"),
        code=5,
    ),
    Mistake(
        "Damaged scores",
        damaged("scores.parquet"),
        ("scores.parquet", "damaged", "rocketeval run --only score"),
        command=("run", "--only", "rank"),
        code=5,
    ),
    Mistake(
        "Damaged inputs",
        damaged("inputs/queries.jsonl"),
        ("queries.jsonl", "damaged", "rocketeval run"),
        command=("explain", "--candidate", "left"),
        code=5,
    ),
    Mistake(
        "A damaged ranking",
        damaged("ranking.json"),
        ("ranking.json", "damaged", "rocketeval run"),
        command=("explain", "--candidate", "left"),
        code=5,
    ),
    Mistake(
        "A run of a newer version",
        newer("manifest.json"),
        ("manifest.json", "newer", "99", "Update RocketEval", "`name`"),
        command=("run", "--only", "rank"),
        code=5,
    ),
    Mistake(
        "A ranking of a newer version",
        newer("ranking.json"),
        ("ranking.json", "newer", "rocketeval run --only rank"),
        command=("explain", "--candidate", "left"),
        code=5,
    ),
    Mistake(
        "The scores were deleted",
        half_deleted("scores.parquet"),
        ("scores.parquet", "`rocketeval run`"),
        command=("run", "--only", "rank"),
        code=5,
    ),
    Mistake(
        "The inputs were deleted",
        half_deleted("inputs"),
        ("demo", "rocketeval run"),
        command=("run", "--only", "score"),
        code=5,
    ),
    Mistake(
        "The ledger was deleted",
        half_deleted("ledger"),
        ("demo", "rocketeval run --only grade"),
        command=("run", "--only", "score"),
        code=5,
    ),
    Mistake(
        "No run yet",
        lambda place: None,
        ("demo", "rocketeval run"),
        command=("run", "--only", "rank"),
        code=5,
    ),
)


def taken(place: Place) -> None:
    place.finish()
    (place.folder / "out.csv").write_text("mine")


def port_taken(place: Place) -> None:
    place.finish()
    other = place.undo.enter_context(socket.socket())
    other.bind(("127.0.0.1", TAKEN))
    other.listen()


VERBS = (
    Mistake(
        "View on a port in use",
        port_taken,
        (str(TAKEN), "--port"),
        command=("view", "runs", "--port", str(TAKEN)),
        code=1,
    ),
    Mistake("An unknown verb", lambda place: None, ("'comapre'", "compare"), command=("comapre",)),
    Mistake("An unknown option", ran, ("--limt", "--limit"), command=("run", "--limt", "3")),
    Mistake(
        "A negative number", ran, ("--top", "-1"), command=("labels", "estimate", "--top", "-1")
    ),
    Mistake(
        "A cost limit that is not a number",
        lambda place: None,
        ("--max-cost", "abc"),
        command=("run", "--max-cost", "abc"),
    ),
    Mistake(
        "A limit of zero", lambda place: None, ("--limit", "0"), command=("run", "--limit", "0")
    ),
    Mistake(
        "Explain an unknown candidate",
        ran,
        ("'lefft'", "Did you mean 'left'"),
        command=("explain", "--candidate", "lefft"),
    ),
    Mistake(
        "A candidate in place of the config",
        ran,
        ("left", "option"),
        command=("explain", "left"),
    ),
    Mistake(
        "Explain an unknown query",
        ran,
        ("'skye'", "Did you mean 'sky'"),
        command=("explain", "--query", "skye"),
    ),
    Mistake(
        "Compare an unknown candidate",
        ran,
        ("'rigth'", "Did you mean 'right'"),
        command=("compare", "left", "rigth"),
    ),
    Mistake(
        "Compare with one candidate only",
        ran,
        ("'SECOND'", "compare [OPTIONS] FIRST SECOND"),
        command=("compare", "left"),
    ),
    Mistake(
        "Compare with itself",
        ran,
        ("'left'", "itself"),
        command=("compare", "left", "left"),
    ),
    Mistake(
        "Estimate without labels",
        ran,
        ("label", "labels next --top 2"),
        command=("labels", "estimate"),
    ),
    Mistake(
        "Export over a file", taken, ("out.csv", "--force"), command=("export", "--out", "out.csv")
    ),
    Mistake(
        "Export to an unknown format", ran, ("'cvs'", "csv"), command=("export", "--to", "cvs")
    ),
    Mistake(
        "View a path that does not exist",
        lambda place: None,
        ("nowhere", "config file"),
        command=("view", "nowhere"),
        code=5,
    ),
    Mistake(
        "An ensemble with a missing run",
        ran,
        ("nowhere",),
        command=("ensemble", "runs/demo", "nowhere", "--out", "x"),
    ),
    Mistake(
        "Init in a folder with a config",
        ran,
        ("rocketeval.yaml", "exist"),
        command=("init", "."),
    ),
    Mistake(
        "Export checklists over a file",
        taken,
        ("out.csv", "--force"),
        command=("checklist", "--out", "out.csv"),
    ),
)

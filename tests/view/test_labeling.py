"""Collected labels: what is written, what is read, and what a server refuses."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rocketeval.benchmarks.collected import CollectedLabel, CollectedLabels, CollectedVote
from rocketeval.errors import BenchmarkError
from support.command import cli
from support.make import CANDIDATES, write_benchmark
from support.viewing import Viewing, finish
from view.test_serve import base, opened, shown

CONFIG = """\
name: voted
benchmark: {path: demo/benchmark, collected: collected.jsonl}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 50}
"""


def _vote(**changes: str) -> CollectedVote:
    given = {"by": "Ada", "query_id": "q", "candidate_a": "x", "candidate_b": "y", "winner": "a"}
    return CollectedVote(**{**given, **changes})  # type: ignore[arg-type]


def test_a_later_vote_of_the_same_person_replaces_an_earlier_one(tmp_path: Path) -> None:
    """Also with the responses in the other order; other people's votes stay."""
    file = CollectedLabels(tmp_path / "made" / "collected.jsonl")
    file.add(_vote())
    file.add(_vote(by="Bob"))
    file.add(_vote(candidate_a="y", candidate_b="x", winner="tie"))
    assert [(vote.voter, vote.winner) for vote in file.votes()] == [("Bob", "a"), ("Ada", "tie")]


def test_a_withdrawn_record_is_not_read(tmp_path: Path) -> None:
    """The file keeps both lines."""
    file = CollectedLabels(tmp_path / "collected.jsonl")
    label = CollectedLabel(by="Ada", query_id="q", candidate="x", value=7.0)
    file.add(label)
    assert [one.value for one in file.labels()] == [7.0]
    file.undo(label.id)
    assert list(file.labels()) == []
    assert len(file.path.read_text().split()) == 2


def test_a_torn_line_is_skipped_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    file = CollectedLabels(tmp_path / "collected.jsonl")
    file.add(_vote())
    with file.path.open("a") as stream:
        stream.write('{"kind": "vote", "by": "A')
    file.add(_vote(by="Bob"))
    assert [vote.voter for vote in file.votes()] == ["Ada", "Bob"]
    with file.path.open("a") as stream:
        row = {"kind": "vote", "id": "odd", "by": "A", "query_id": "q", "winner": "c"}
        stream.write(json.dumps({**row, "candidate_a": "x", "candidate_b": "y"}) + "\n")
    with pytest.raises(BenchmarkError, match="odd"):
        file.records()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without votes, whose config names a file for labels."""
    made = tmp_path_factory.mktemp("labeling")
    cli(made, "init", "demo")
    (made / "demo" / "benchmark" / "votes.jsonl").unlink()
    (made / "voted.yaml").write_text(CONFIG)
    cli(made, "run", "voted.yaml", "--quiet")
    return made


def test_labels_next_draws_pairs_evenly(folder: Path) -> None:
    """The same seed draws the same pairs; each is of two candidates on one query."""
    args = ("labels", "next", "voted.yaml", "--top", "3", "--pairs", "--queries", "9", "--json")
    drawn = json.loads(cli(folder, *args).stdout)
    assert drawn == json.loads(cli(folder, *args).stdout)
    assert [one["stratum"] for one in drawn] == [0, 1, 2] * 3
    assert all(one["candidate_a"] != one["candidate_b"] for one in drawn)
    assert len({(one["query_id"], one["candidate_a"], one["candidate_b"]) for one in drawn}) == 9


def _post(address: str, body: object, origin: str | None, kind: str = "application/json") -> int:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(address).close()
    headers = {"Content-Type": kind, **({} if origin is None else {"Origin": origin})}
    request = urllib.request.Request(
        base(address) + "run/voted/label", json.dumps(body).encode(), headers, method="POST"
    )
    try:
        with opener.open(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_server_accepts_labels_only_from_its_own_page(folder: Path) -> None:
    """Other origins, other content types, and labels that do not fit the run are refused."""
    vote = {"kind": "vote", "query": "twisted-ankle", "a": "careful", "b": "solid", "winner": "a"}
    with shown(folder, "voted.yaml", "--label", "--labeler", "Ada") as (_, address):
        own = base(address).rstrip("/")
        assert _post(address, vote, None) == 403
        assert _post(address, vote, "http://elsewhere.example") == 403
        assert _post(address, vote, own, "text/plain") == 403
        wrong: list[object] = [
            [],
            {**vote, "winner": "c"},
            {**vote, "query": "none"},
            {**vote, "b": "nobody"},
            {**vote, "b": "careful"},
            {"kind": "label", "query": "twisted-ankle", "candidate": "solid", "value": 99},
            {"kind": "answer", "query": "twisted-ankle", "candidate": "solid", "item": 99},
        ]
        assert [_post(address, body, own) for body in wrong] == [400] * len(wrong)
        assert not (folder / "collected.jsonl").exists()
        assert _post(address, vote, own) == 200
        assert len(list(CollectedLabels(folder / "collected.jsonl").votes())) == 1
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(base(address) + "run/voted/label")
    with shown(folder, "voted.yaml") as (_, address):
        own = base(address).rstrip("/")
        assert _post(address, vote, own) == http.client.METHOD_NOT_ALLOWED
        assert opened(address).status == 200


def test_labeling_needs_a_file_in_the_config(folder: Path) -> None:
    """The hint has the line to add."""
    (folder / "plain.yaml").write_text(
        CONFIG.replace(", collected: collected.jsonl", "").replace("voted", "plain")
    )
    cli(folder, "run", "plain.yaml", "--quiet")
    error = cli(folder, "view", "plain.yaml", "--label", code=2).stderr
    assert "collected: collected.jsonl" in error


async def test_labeling_follows_a_repeated_run(tmp_path: Path, viewing: Viewing) -> None:
    """A query that was added can be voted on, and scores are those of the new run."""
    benchmark = {"path": str(tmp_path / "benchmark"), "collected": str(tmp_path / "given.jsonl")}
    write_benchmark(tmp_path / "benchmark")
    run = finish(tmp_path, benchmark=benchmark)
    view = await viewing(run, labeler="Ada")
    assert (await view.json("/run/run/label"))["pairs"] == []
    for name, row in (
        ("queries", {"id": "moon", "text": "Why the moon?"}),
        ("checklists", {"query_id": "moon", "items": ["Is it right?", "Is it clear?"]}),
        *((f"responses/{name}", {"query_id": "moon", "text": name}) for name in CANDIDATES),
    ):
        with (tmp_path / "benchmark" / f"{name}.jsonl").open("a") as stream:
            stream.write(json.dumps(row) + "\n")
    finish(tmp_path, benchmark=benchmark)
    assert [pair["query"] for pair in (await view.json("/run/run/label"))["pairs"]] == ["moon"]

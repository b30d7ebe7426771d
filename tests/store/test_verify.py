"""Damage is found and named, set aside, and never another score."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocketeval.errors import StoreError
from rocketeval.pipeline import Run
from rocketeval.records import Answer, Failure, Judgment, Status
from rocketeval.store.checksums import NAME, Recorded, check_file, keep_checksums, read_log
from rocketeval.store.files import remove, write_json, write_parquet
from rocketeval.store.ledger import Ledger, Mirror, adopt_from_cache, read_tables, replace_ledger
from rocketeval.store.run import RunStore
from rocketeval.store.schema import JUDGMENTS, judgment_to_row
from rocketeval.store.verify import repair_run, verify_run
from support.make import judgment, key, make_config

JUDGE = b"j" * 16


@pytest.fixture
async def store(tmp_path: Path) -> RunStore:
    """Return a finished run."""
    run = Run(make_config(tmp_path, cache=None))
    await run.all()
    return run.store


def flip(path: Path, place: int = -30) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


async def test_a_new_run_is_whole(store: RunStore) -> None:
    """Every file of a finished run has a checksum that holds, and the manifest confirms them."""
    found = verify_run(store)
    assert found.whole
    assert found.judgments == 6
    assert {file.verdict for file in found.files} == {"whole"}
    assert set(store.manifest().checksums or {}) == {"inputs", "inputs/responses", "ledger"}


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "run.yaml",
        "scores.parquet",
        "ranking.json",
        "inputs/queries.jsonl",
        "inputs/checklists.jsonl",
        "inputs/votes.jsonl",
        "inputs/responses/part-000000.parquet",
        "ledger/part-000001.parquet",
    ],
)
@pytest.mark.parametrize("kind", ["flip", "half", "removed"])
async def test_damage_is_found_and_repaired(store: RunStore, name: str, kind: str) -> None:
    """Each damaged file is named; after a repair, the next run has the same scores."""
    before = (store.path / "scores.parquet").read_bytes()
    path = store.path / name
    if kind == "flip":
        flip(path)
    elif kind == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.unlink()
    assert name in {file.name for file in verify_run(store).damaged}
    mended = repair_run(store)
    assert name in mended.set_aside
    if kind != "removed":
        assert mended.folder is not None
        assert (mended.folder / name).exists()
    assert verify_run(store).whole
    again = Run(make_config(store.path.parents[1], cache=None))
    await again.all()
    assert (store.path / "scores.parquet").read_bytes() == before
    assert verify_run(store).whole


async def test_a_damaged_part_is_an_error_not_a_score(store: RunStore) -> None:
    """Scoring a run whose ledger or inputs are damaged stops with a sentence."""
    config = make_config(store.path.parents[1], cache=None)
    for name in ("ledger/part-000001.parquet", "inputs/responses/part-000000.parquet"):
        path = store.path / name
        content = path.read_bytes()
        flip(path, len(content) // 2)
        with pytest.raises(StoreError, match="is damaged"):
            Run(config).score()
        path.unlink()
        with pytest.raises(StoreError, match=r"it is missing|no judgments"):
            Run(config).score()
        path.write_bytes(content)
    Run(config).score()


async def test_a_run_without_checksums_still_loads(store: RunStore) -> None:
    """Runs of earlier versions are read as before, and verified as far as possible."""
    before = (store.path / "scores.parquet").read_bytes()
    for log in store.path.rglob(NAME):
        log.unlink()
    manifest = json.loads((store.path / "manifest.json").read_bytes())
    del manifest["checksums"]
    (store.path / "manifest.json").write_text(json.dumps(manifest))
    found = verify_run(store)
    assert found.whole
    assert {file.verdict for file in found.files} == {"readable"}
    Run(make_config(store.path.parents[1], cache=None)).score()
    assert (store.path / "scores.parquet").read_bytes() == before
    part = next((store.path / "ledger").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-40])
    assert [file.name for file in verify_run(store).damaged] == [f"ledger/{part.name}"]


def test_a_damaged_line_of_a_journal_costs_one_judgment(tmp_path: Path) -> None:
    """The other lines stay, and a digit that changed is noticed."""
    store = RunStore(tmp_path)
    ledger = Ledger(store.ledger_folder, JUDGE)
    for name in "abc":
        ledger.append(judgment(name))
    (journal,) = store.ledger_folder.glob("journal-*")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert b"0.25" in lines[1]
    lines[1] = lines[1].replace(b"0.25", b"0.26", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match="line 2"):
        list(read_tables(store.ledger_folder))
    assert verify_run(store).damaged[0].why.startswith("line 2")
    assert repair_run(store).kept == 2
    reopened = Ledger(store.ledger_folder, JUDGE)
    assert reopened.finished == {key("a"), key("c")}
    reopened.append(judgment("b"))
    assert verify_run(store).whole
    reopened.close()
    assert verify_run(store).whole
    assert sum(table.num_rows for table in read_tables(store.ledger_folder)) == 3


def test_a_damaged_failure_costs_one_failure(tmp_path: Path) -> None:
    """Answers of failed tasks that changed are not reused."""
    store = RunStore(tmp_path)
    answers = (Answer(Status.OK, 0.25), Answer(Status.ERROR))
    store.save_failures(Failure(key(n), "q", n, "why", answers) for n in "ab")
    path = tmp_path / "failures.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.75", 1))
    with pytest.raises(StoreError, match=r"failures\.jsonl is damaged"):
        store.failures()
    repair_run(store)
    assert [failure.candidate for failure in store.failures()] == ["b"]


def test_lost_answers_of_earlier_versions_are_set_aside(tmp_path: Path) -> None:
    """A repair takes out judgments with holes, so that the next run asks them again."""
    store = RunStore(tmp_path)
    hole = Judgment(key("b"), "q", "b", (Answer(Status.OK, 0.5), Answer(Status.NO_LOGPROBS)))
    ledger = Ledger(store.ledger_folder, JUDGE)
    for one in (judgment("a"), hole, judgment("c")):
        ledger.append(one)
    ledger.close()
    assert verify_run(store).incomplete == 1
    mended = repair_run(store)
    assert (mended.kept, mended.to_ask) == (2, 1)
    assert mended.folder is not None
    assert pq.read_table(mended.folder / "ledger" / "part-000001.parquet").num_rows == 3
    assert verify_run(store).incomplete == 0


def test_lost_answers_in_a_repaired_journal_are_set_aside(tmp_path: Path) -> None:
    """A journal with a damaged line and a judgment with a hole: both go, and the run continues."""
    store = RunStore(tmp_path)
    hole = Judgment(key("b"), "q", "b", (Answer(Status.OK, 0.5), Answer(Status.NO_LOGPROBS)))
    ledger = Ledger(store.ledger_folder, JUDGE)
    for one in (judgment("a"), hole, judgment("c")):
        ledger.append(one)
    (journal,) = store.ledger_folder.glob("journal-*")
    journal.write_bytes(journal.read_bytes().replace(b"0.25", b"0.26", 1))
    assert repair_run(store).kept == 1
    assert verify_run(store).whole
    reopened = Ledger(store.ledger_folder, JUDGE)
    assert reopened.finished == {key("c")}
    reopened.append(judgment("a"))
    reopened.close()
    assert verify_run(store).whole
    assert sum(table.num_rows for table in read_tables(store.ledger_folder)) == 2


def test_a_kill_between_checksum_and_file_is_no_damage(tmp_path: Path) -> None:
    """The previous content stays valid, and a file that never came is not missing."""
    keep_checksums(tmp_path)
    path = tmp_path / "a.json"
    write_json(path, {"n": 1})
    first = path.read_bytes()
    write_json(path, {"n": 2})
    path.write_bytes(first)
    check_file(path)
    write_json(path, {"n": 3})
    path.write_bytes(first)
    with pytest.raises(StoreError, match="damaged"):
        check_file(path)
    remove(path)
    assert read_log(tmp_path).files() == []


def test_edited_checksums_are_noticed(tmp_path: Path) -> None:
    """A checksum that was changed together with its file does not follow from the others."""
    store = RunStore(tmp_path)
    ledger = Ledger(store.ledger_folder, JUDGE, roll_rows=1)
    for name in "abc":
        ledger.append(judgment(name))
    ledger.close()
    log = store.ledger_folder / NAME
    lines = log.read_text().splitlines(keepends=True)
    log.write_text(lines[0] + lines[2])
    assert f"ledger/{NAME}" in {file.name for file in verify_run(store).damaged}


@pytest.mark.parametrize("name", ["../../../settings.json", "/settings.json", "a/b", "..", "C:x"])
async def test_a_repair_stays_inside_the_run(store: RunStore, name: str) -> None:
    """Checksums that name a file of another folder are damage; that file is never touched."""
    outside = store.path.parents[1] / "settings.json"
    outside.write_text("mine")
    assert (store.ledger_folder / "../../../settings.json").exists()
    log = store.ledger_folder / NAME
    line = Recorded.after(read_log(store.ledger_folder).head, name, 3, "00" * 16)
    log.write_bytes(log.read_bytes() + orjson.dumps(line) + b"\n")
    assert [file.name for file in verify_run(store).damaged] == [f"ledger/{NAME}"]
    repair_run(store)
    assert outside.read_text() == "mine"
    assert verify_run(store).whole


async def test_a_manifest_confirms_only_folders_of_its_run(store: RunStore) -> None:
    """A manifest that names another folder is damaged, and that folder is not touched."""
    outside = store.path.parents[1] / "other"
    keep_checksums(outside)
    write_json(outside / "a.json", {})
    before = (outside / NAME).read_bytes()
    path = store.path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["checksums"]["../../other"] = "00" * 16
    write_json(path, manifest)
    assert [file.name for file in verify_run(store).damaged] == ["manifest.json"]
    repair_run(store)
    assert (outside / NAME).read_bytes() == before
    assert verify_run(store).whole


@pytest.mark.parametrize("folder", ["", "inputs", "ledger"])
@pytest.mark.parametrize("kind", ["flip", "removed", "shortened"])
async def test_a_repair_of_checksums_ends(store: RunStore, folder: str, kind: str) -> None:
    """After one repair nothing is damaged, and the next run has the same scores."""
    before = (store.path / "scores.parquet").read_bytes()
    log = store.path / folder / NAME
    content = log.read_bytes()
    if kind == "flip":
        flip(log, len(content) // 3)
    elif kind == "removed":
        log.unlink()
    else:
        end = content[:-1].rfind(b"\n") + 1
        log.write_bytes(content[:end])
    assert verify_run(store).damaged
    repair_run(store)
    assert verify_run(store).damaged == ()
    await Run(make_config(store.path.parents[1], cache=None)).all()
    assert verify_run(store).whole
    assert (store.path / "scores.parquet").read_bytes() == before


def test_cached_parts_are_copies(tmp_path: Path) -> None:
    """Damage to a run's part is not damage to the cache; a damaged cache file is skipped."""
    cache = tmp_path / "cache"
    for owner in ("one", "two"):
        ledger = Ledger(tmp_path / owner, JUDGE, mirror=Mirror(cache, owner))
        ledger.append(judgment("a" if owner == "one" else "b"))
        ledger.close()
    flip(next((tmp_path / "one").glob("part-*")))
    wanted = {key(name): ("q", name) for name in "ab"}
    fresh = Ledger(tmp_path / "fresh", JUDGE)
    assert adopt_from_cache(fresh, cache, wanted) == 2
    fresh.close()
    flip(next(cache.glob("one-part-*")))
    other = Ledger(tmp_path / "other", JUDGE)
    assert adopt_from_cache(other, cache, wanted) == 1
    other.close()


def test_leftovers_of_a_kill_are_removed(tmp_path: Path) -> None:
    """Temporary files go with the next lock, and an old snapshot of the inputs comes back."""
    store = RunStore(tmp_path / "run")
    with store.locked():
        pass
    stray = store.path / ".scores.parquet.4242.tmp"
    stray.write_bytes(b"half")
    (store.path / ".inputs.old").mkdir()
    assert verify_run(store).temporaries == 1
    with RunStore(store.path).locked():
        assert not stray.exists()
        assert (store.path / "inputs").is_dir()


@pytest.mark.parametrize("again", ["lock", "replace"])
def test_a_kill_between_two_renames_loses_no_ledger(tmp_path: Path, again: str) -> None:
    """The old ledger comes back: it is the only copy until the new one is in place."""
    store = RunStore(tmp_path)
    rows = pa.Table.from_pylist([judgment_to_row(judgment("a"), JUDGE.hex())], JUDGMENTS)
    replace_ledger(store.ledger_folder, rows)
    store.ledger_folder.rename(tmp_path / ".ledger.old")
    if again == "lock":
        with store.locked():
            assert store.finished() == {key("a")}
        assert not (tmp_path / ".ledger.old").exists()
        return
    with pytest.raises(AttributeError):
        replace_ledger(store.ledger_folder, None)  # type: ignore[arg-type]
    assert store.finished() == {key("a")}


def test_a_new_run_is_private(tmp_path: Path) -> None:
    """Only the owner can read a new run; one in an open folder stays open."""
    store = RunStore(tmp_path / "run")
    with store.locked():
        store.save_text("run.yaml", "name: run")
    assert store.path.stat().st_mode & 0o777 == 0o700
    assert (store.path / "run.yaml").stat().st_mode & 0o777 == 0o600
    store.path.chmod(0o755)
    store.save_text("run.yaml", "name: run\n")
    assert (store.path / "run.yaml").stat().st_mode & 0o777 == 0o644


def test_a_part_with_impossible_values_is_damaged(tmp_path: Path) -> None:
    """Without a checksum, an unknown status or a key that is no key is still noticed."""
    for change in ({"status": ["fine", "ok"]}, {"key": "xyz"}, {"p_yes": [0.5]}):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        row = {**judgment_to_row(judgment("a"), JUDGE.hex()), **change}
        write_parquet(folder / "part-000001.parquet", pa.Table.from_pylist([row], JUDGMENTS))
        with pytest.raises(StoreError, match="damaged"):
            list(read_tables(folder))
    shutil.rmtree(tmp_path)


async def test_missing_queries_are_a_sentence(store: RunStore) -> None:
    """A file of the inputs that is missing is named by whatever needs it."""
    (store.inputs.folder / "queries.jsonl").unlink()
    with pytest.raises(StoreError, match=r"queries\.jsonl is damaged: it is missing"):
        RunStore(store.path).inputs.clusters()

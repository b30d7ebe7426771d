"""End-to-end tests of `rocketeval lint --fix`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
import yaml

from fakes.openai_server import MODEL, serving
from support.command import start_cli
from support.in_process import cli
from support.make import QUERIES, write_jsonl
from support.rewriting_author import RewritingServer, write_bad_benchmark

CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: m}}
author:
  engine: {{engine: scripted, model: big, options: {options}}}
  price: {{prompt: 1, completion: 2, currency: EUR}}
ranking: {{bootstrap: 50}}
"""
REWRITTEN = "2. Does the [red]response\u202e explain the reason?\n3. DROP"


def prepare(folder: Path, text: str = REWRITTEN, *, shared: bool = False, delay: float = 0) -> None:
    """Create a finished run with two bad items per checklist, whose author writes `text`."""
    write_bad_benchmark(folder, shared=shared)
    options = json.dumps({"text": text, "delay": delay})
    (folder / "rocketeval.yaml").write_text(CONFIG.format(options=options))
    cli(folder, "run", "--quiet")


def test_output_has_old_and_new_items_and_the_next_step(tmp_path: Path) -> None:
    """The output has counts, cost, the file, and the lines for the config."""
    prepare(tmp_path)
    told = cli(tmp_path, "lint", "rocketeval.yaml", "--fix", "sub/new.yaml").stdout
    assert "sky, item 2: rewritten (yes_is_worse)" in told
    assert "  - Does the response fail to mention the sky?" in told
    assert "  + Does the [red]response\ufffd explain the reason?" in told
    assert "sun, item 3: dropped (not_yes_no)" in told
    assert "6 items in 3 checklists: 3 rewritten, 3 dropped, 0 unchanged." in told
    assert "Author big: 0.00 EUR" in told
    assert "Proposal, all 3 checklists: sub/new.yaml" in told
    lines = told[told.index("author:") : told.index("Then `rocketeval run`")]
    given = yaml.safe_load(lines)
    assert given == {"author": {"kind": "file", "options": {"file": "sub/new.yaml"}}}
    config = yaml.safe_load((tmp_path / "rocketeval.yaml").read_text())
    config["author"] |= given["author"]
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(config))
    cli(tmp_path, "run", "--quiet")
    assert "6 items in 3 checklists" in cli(tmp_path, "lint").stdout
    assert "no item needs a rewrite" in cli(tmp_path, "lint", "--fix", "more.yaml").stdout
    assert not (tmp_path / "more.yaml").exists()


def test_shared_checklist_is_shown_once(tmp_path: Path) -> None:
    """Its title names all queries."""
    prepare(tmp_path, shared=True)
    told = cli(tmp_path, "lint", "--fix", "new.yaml").stdout
    assert "all 3 queries, item 2: rewritten" in told
    assert "2 items in 1 checklist: 1 rewritten, 1 dropped, 0 unchanged." in told


def test_unchanged_items_are_exit_code_3(tmp_path: Path) -> None:
    """Each has its reason, and a checklist without a readable proposal is named."""
    prepare(tmp_path, "2. Does the response explain the reason?\n3. How good is it?")
    told = cli(tmp_path, "lint", "--fix", "new.yaml", code=3).stdout
    assert "sky, item 3: left (not_yes_no)" in told
    assert "because no proposal was good enough; the best: scale" in told
    prepare(tmp_path, "Sorry.\x1b[2J")
    cli(tmp_path, "run", "--quiet")
    (tmp_path / "runs/.cache/authored.jsonl").unlink()
    told = cli(tmp_path, "lint", "--fix", "more.yaml", code=3).stdout
    assert "No rewrite for sea: " in told
    assert "no file was written" in told
    assert "\x1b" not in told


def test_proposal_as_json(tmp_path: Path) -> None:
    """The JSON document has the whole proposal."""
    prepare(tmp_path)
    told = json.loads(cli(tmp_path, "lint", "--fix", "new.csv", "--json").stdout)
    assert (told["rewritten"], told["dropped"], told["left"]) == (3, 3, 0)
    change = told["changes"][0]
    assert (change["query_id"], change["item"], change["outcome"]) == ("sky", 2, "rewritten")
    assert len(told["checklists"]) == 3
    assert told["path"] == "new.csv"
    assert (tmp_path / "new.csv").read_text().startswith("query_id,query,group,item\n")


def test_run_directory_names_its_author(tmp_path: Path) -> None:
    """A run directory can be fixed, also after it was moved."""
    prepare(tmp_path)
    told = cli(tmp_path, "lint", "runs/demo", "--fix", "new.yaml", "--top", "1").stdout
    assert str(tmp_path / "new.yaml") in told
    assert "5 more items" in told
    assert "--top 6" in told
    (tmp_path / "runs" / "demo").rename(tmp_path / "moved")
    told = cli(tmp_path, "lint", "moved", "--fix", "more.yaml").stdout
    assert str(tmp_path / "more.yaml") in told
    assert not (tmp_path / "runs" / "demo").exists()


def test_requirements_are_reported(tmp_path: Path) -> None:
    """It needs a config, an author, a run with checklists, a free path, and fitting options."""
    prepare(tmp_path)
    needs = "--fix needs a config"
    assert needs in cli(tmp_path, "lint", "benchmark", "--fix", "new.yaml", code=2).stderr
    write_jsonl(tmp_path / "own.jsonl", [{"query_id": "q", "items": ["Is it?"]}])
    assert needs in cli(tmp_path, "lint", "own.jsonl", "--fix", "new.yaml", code=2).stderr
    fix = ("lint", "--fix", "new.yaml")
    missing = cli(tmp_path, *fix, "--name", "later", code=5).stderr
    assert "no checklists yet" in missing
    assert not (tmp_path / "runs" / "later").exists()
    (tmp_path / "new.yaml").write_text("mine")
    assert "exists" in cli(tmp_path, *fix, code=2).stderr
    cli(tmp_path, *fix, "--force", "--quiet")
    assert (tmp_path / "new.yaml").read_text() != "mine"
    assert "need --fix" in cli(tmp_path, "lint", "--max-cost", "1", code=2).stderr
    assert "not both" in cli(tmp_path, *fix, "--strict", code=2).stderr
    assert (
        "nowhere does not exist"
        in cli(tmp_path, "lint", "nowhere", "--fix", "a.csv", code=2).stderr
    )


def test_no_input_of_the_run_is_replaced(tmp_path: Path) -> None:
    """--force never replaces the config, a link to it, the run's copy, or the price file."""
    prepare(tmp_path)
    (tmp_path / "link.yaml").symlink_to("rocketeval.yaml")
    (tmp_path / "prices.yaml").write_text("models: {}")
    with (tmp_path / "rocketeval.yaml").open("a") as config:
        config.write("prices: prices.yaml\n")
    names = ("rocketeval.yaml", "link.yaml", "runs/demo/run.yaml", "prices.yaml")
    before = [(tmp_path / name).read_bytes() for name in names]
    asked = [("rocketeval.yaml", name) for name in names]
    for what, name in [*asked, ("runs/demo", "runs/demo/run.yaml")]:
        told = cli(tmp_path, "lint", what, "--fix", name, "--force", code=2).stderr
        assert name.rpartition("/")[2] in told
        assert "--force" not in told
    assert [(tmp_path / name).read_bytes() for name in names] == before


def test_proposal_is_linted_like_any_other_file(tmp_path: Path) -> None:
    """Only static checks apply, and it cannot be fixed without a config."""
    prepare(tmp_path)
    for name in ("new.yaml", "new.csv"):
        cli(tmp_path, "lint", "--fix", name, "--quiet")
        told = cli(tmp_path, "lint", name).stdout
        assert "6 items in 3 checklists" in told
        assert "Static checks only" in told
        wrong = cli(tmp_path, "lint", name, "--fix", "more.yaml", code=2).stderr
        assert "--fix needs a config" in wrong


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
async def test_ctrl_c_stops_cleanly_and_says_how_to_continue(tmp_path: Path) -> None:
    """Finished answers are saved and reused, and no partial file is left."""
    write_bad_benchmark(tmp_path)
    async with serving(RewritingServer(latency=1.0)) as server:
        config = yaml.safe_load(CONFIG.format(options="{}"))
        engine = {"model": MODEL, "base_url": server.base_url, "concurrency": 1}
        config["author"] = {"engine": engine}
        (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(config))
        written = await start_cli(tmp_path, "run", "--only", "checklist", "--quiet")
        assert await written.wait() == 0
        going = await start_cli(tmp_path, "lint", "--fix", "new.yaml")
        while not server.chats:
            assert going.returncode is None
            await asyncio.sleep(0.02)
        going.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(going.communicate(), 240)
        assert going.returncode == 130
        assert "Run the same command again" in err.decode()
        assert "Traceback" not in err.decode()
        assert not (tmp_path / "new.yaml").exists()
        assert len(server.chats) == 1
        server.latency = 0.0
        again = await start_cli(tmp_path, "lint", "--fix", "new.yaml")
        out, _ = await asyncio.wait_for(again.communicate(), 240)
    assert again.returncode == 0
    assert "1 reused" in out.decode()
    assert len(server.chats) == len(QUERIES)

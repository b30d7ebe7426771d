"""Let a real author write checklists, kill it half way, resume, and report the results.

    python studies/authoring/real_author.py --base-url http://127.0.0.1:8000/v1 --model NAME

Two authors work through the command line: the instance author on the packaged example's queries and
four of our own, and the dimension author with all steps on `coherence` of `summarization`. Each is
killed (SIGKILL) once some of its lists are stored, started again, and run a third time to show that
nothing is left to pay for. Every request goes through a counting proxy. Failures are shown: a small
author has many. `--record` writes `recorded/real_author.txt` and `.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from counting_proxy import CountingProxy, Seen, counting
from show_authoring import shown

from rocketeval.text import printable

HERE = Path(__file__).parent
OWN_QUERIES = [
    {
        "id": "train-delay",
        "text": "My 09:12 train from Leeds was 65 minutes late. Write to the operator's customer "
        "service: ask for the refund that their 60-minute rule promises, name the train, and stay "
        "friendly. At most 120 words.",
    },
    {
        "id": "haiku-tides",
        "text": "Write a haiku about tides: three lines of five, seven and five syllables, with "
        "the moon in the last line.",
    },
    {
        "id": "sql-late-orders",
        "text": "A table orders(id, customer, due, shipped) holds dates. Write one SQL query that "
        "lists customers with more than two orders shipped after they were due, the most late "
        "orders first.",
    },
    {
        "id": "decaf-claim",
        "text": "Is decaffeinated coffee completely free of caffeine? Answer in two sentences for "
        "somebody whose doctor told them to avoid caffeine.",
        "reference": "No: a cup of decaf still holds a few milligrams (often 2 to 15). Who must "
        "avoid caffeine altogether should ask the doctor, or drink something without any.",
    },
]
SAFE_BEFORE_KILL = 2
"""Number of lists in the journal when the process is killed."""
ANSWERED_BEFORE_KILL = 8
"""Number of answers after which it is killed even if no list could be read."""
RETRY = "\n# Your last answer\n"
"""A line in prompts that show the author its own mistake."""
CHECKLIST = ("run", "--only", "checklist")
FAILURE_LINES = ("no checklist for ", "continued without ", "went on without ")
"""How the lines begin that report failures."""
AUTHORS: dict[str, dict[str, Any]] = {
    "instance": {"kind": "instance"},
    "dimension": {
        "kind": "dimension",
        "options": {
            "file": "summarization",
            "dimensions": ["coherence"],
            "steps": ["diversify", "elaborate", "filter"],
            "on_failure": "skip",
        },
    },
}


def main() -> None:
    """Run both authors and print the results."""
    args = parse_arguments()
    result = asyncio.run(study(args))
    print("\n".join(map(printable, shown(result))))
    if args.record:
        record(result)


def record(result: dict[str, Any]) -> None:
    """Write the result; keep another author's earlier result of the same model."""
    path = HERE / "recorded" / "real_author.json"
    path.parent.mkdir(exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    if before.get("model") == result["model"]:
        result = {**result, "authors": {**before["authors"], **result["authors"]}}
    path.write_text(json.dumps(result, indent=1) + "\n")
    path.with_suffix(".txt").write_text("\n".join(map(printable, shown(result))) + "\n")


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base-url", required=True, help="URL of any OpenAI-compatible server")
    parser.add_argument("--model", required=True, help="the author's name at that server")
    parser.add_argument("--queries", type=int, help="use only the first N queries")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at once")
    parser.add_argument("--timeout", type=float, default=1200.0, help="seconds per request")
    parser.add_argument("--max-tokens", type=int, help="limit per answer, for a slow server")
    parser.add_argument("--only", choices=list(AUTHORS), help="run only one author")
    parser.add_argument("--record", action="store_true", help="write to recorded/")
    return parser.parse_args()


async def study(args: argparse.Namespace) -> dict[str, Any]:
    """Return the results of each author."""
    result: dict[str, Any] = {"model": args.model, "authors": {}}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_benchmark(folder / "benchmark", args.queries)
        for name in [args.only] if args.only else AUTHORS:
            async with counting(args.base_url) as proxy:
                write_config(folder, name, proxy, args)
                result["authors"][name] = await examine(folder, name, proxy)
    return result


def write_benchmark(folder: Path, most: int | None) -> None:
    """Write the packaged example's queries and our own, with placeholder responses."""
    packaged = Path(str(resources.files("rocketeval"))) / "examples" / "quickstart"
    shutil.copytree(packaged, folder)
    rows = [json.loads(line) for line in (packaged / "queries.jsonl").read_text().splitlines()]
    rows = [*OWN_QUERIES, *rows][:most]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("votes.jsonl", "labels.jsonl", "checklists.jsonl"):
        (folder / name).unlink()
    shutil.rmtree(folder / "responses")
    (folder / "responses").mkdir()
    empty = [{"query_id": row["id"], "text": "(not judged here)"} for row in rows]
    text = "".join(json.dumps(row) + "\n" for row in empty)
    (folder / "responses" / "nobody.jsonl").write_text(text)


def write_config(folder: Path, name: str, proxy: CountingProxy, args: argparse.Namespace) -> None:
    """Write the config of one author; its journal stays in the run."""
    engine = {
        "model": args.model,
        "base_url": proxy.base_url,
        "concurrency": args.concurrency,
        "timeout": args.timeout,
        "extra_body": {"max_tokens": args.max_tokens} if args.max_tokens else {},
    }
    config = {
        "name": name,
        "benchmark": {"path": "benchmark"},
        "judge": {"engine": "scripted", "model": "nobody"},
        "author": {**AUTHORS[name], "engine": engine},
        "cache": None,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


async def examine(folder: Path, name: str, proxy: CountingProxy) -> dict[str, Any]:
    """Kill an author once, let it finish, and run it again; return the results of each start."""
    journal = folder / "runs" / name / "authored.jsonl"
    began = time.monotonic()
    killed = await kill_midway(folder, name, proxy, journal)
    finished = await run_checklist(folder, name)
    seconds = time.monotonic() - began
    requests = proxy.answered
    kept = journaled(journal)
    account = {
        "killed": killed,
        "finished": finished,
        "seconds": round(seconds, 1),
        "requests": requests,
        "answered_twice": answered_twice(proxy),
        "kept": len(kept),
        "kept_twice": len(kept) - len({row["key"] for row in kept}),
        "prompts": [prompt_row(each) for each in proxy.seen.values()],
        "provenance": provenance(folder, name),
        "checklists": checklists(folder, name),
        "lint": await lint_findings(folder, name),
    }
    # Last, because an instance author asks again for failed lists and may return other ones.
    again = await run_checklist(folder, name)
    return {**account, "again": {**again, "requests": proxy.answered - requests}}


async def kill_midway(
    folder: Path, name: str, proxy: CountingProxy, journal: Path
) -> dict[str, Any]:
    """Start an author and kill it once some lists are stored; return the state at the kill."""
    process = await start(folder, *CHECKLIST, f"{name}.yaml", "--json")
    while (
        process.returncode is None
        and len(journaled(journal)) < SAFE_BEFORE_KILL
        and proxy.answered < ANSWERED_BEFORE_KILL
    ):
        await asyncio.sleep(0.02)
    alive = process.returncode is None
    if alive:
        process.kill()
    await process.communicate()
    sent = sum(each.sent for each in proxy.seen.values())
    return {
        "in_time": alive,
        "kept": [row["query_id"] for row in journaled(journal)],
        "answered": proxy.answered,
        "in_flight": sent - proxy.answered,
    }


async def run_checklist(folder: Path, name: str) -> dict[str, Any]:
    """Run `rocketeval run --only checklist` to its end; return its exit code and output."""
    process = await start(folder, *CHECKLIST, f"{name}.yaml", "--json")
    out, errors = await process.communicate()
    said = errors.decode().splitlines()
    result = json.loads(out) if out.strip() else {"error": {"message": said[-1] if said else ""}}
    result.pop("path", None)
    failed = [line for line in said if line.startswith(FAILURE_LINES)]
    return {"exit_code": process.returncode, "told": result, "said": failed}


async def lint_findings(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the static lint findings; None without a checklist."""
    if not (folder / "runs" / name / "inputs" / "checklists.jsonl").exists():
        return None
    process = await start(folder, "lint", f"runs/{name}", "--json")
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    found = json.loads(out)
    return {name: found[name] for name in ("items", "flagged", "errors", "kinds", "findings")}


async def start(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Start the command line in a folder, as a process that can be killed."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "rocketeval.cli.main", *arguments),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def journaled(journal: Path) -> list[dict[str, Any]]:
    """Return the complete rows of the journal."""
    lines = journal.read_text().split("\n")[:-1] if journal.exists() else []
    return [json.loads(line) for line in lines if line]


def answered_twice(proxy: CountingProxy) -> int:
    """Return the number of answers to prompts that had been answered before."""
    return sum(max(0, each.answered - 1) for each in proxy.seen.values())


def prompt_row(seen: Seen) -> dict[str, Any]:
    """Return one prompt's hash, length and counts, without its text."""
    return {
        "prompt": seen.name,
        "characters": len(seen.prompt),
        "again": RETRY in seen.prompt,
        "sent": seen.sent,
        "answered": seen.answered,
        "prompt_tokens": seen.prompt_tokens,
        "completion_tokens": seen.completion_tokens,
        "texts": seen.texts,
    }


def provenance(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the run's own record of where its checklists came from."""
    path = folder / "runs" / name / "inputs" / "checklist_provenance.json"
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def checklists(folder: Path, name: str) -> dict[str, list[str]]:
    """Return the items by query; one list if all queries share it."""
    path = folder / "runs" / name / "inputs" / "checklists.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if name == "dimension":
        return {"every query": rows[0]["items"]} if rows else {}
    return {row["query_id"]: row["items"] for row in rows}


if __name__ == "__main__":
    main()

"""The results of a real author as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SHOWN_TEXT = 110


def shown(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the whole report."""
    yield f"author: {result['model']}"
    for name, author in result["authors"].items():
        yield ""
        yield f"== {name} author =="
        yield from lives(author)
        yield from prompts(author["prompts"])
        yield from lists(author)
        yield from refusals(author)
        yield from lint(author["lint"])
        yield from items(author["checklists"])


def lives(author: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was stored at the kill, what was asked after it, and what was paid for twice."""
    killed, finished, again = author["killed"], author["finished"], author["again"]
    if killed["in_time"]:
        yield (
            f"killed (SIGKILL) with {len(killed['kept'])} lists safe, "
            f"{killed['answered']} requests answered and {killed['in_flight']} in flight"
        )
    else:
        yield "it ended before the kill"
    result = finished["told"]
    reused = result.get("composition", result).get("reused_steps", result.get("reused"))
    yield f"started again: exit code {finished['exit_code']}, {reused} lists reused"
    yield (
        f"{author['requests']} requests answered in all; {author['kept']} rows in the journal, "
        f"{author['kept_twice']} of them twice; {author['answered_twice']} answers to a prompt "
        "that had been answered before (unfinished lists at the kill)"
    )
    yield (
        f"a third time: exit code {again['exit_code']}, {again['requests']} requests (an instance "
        "author asks again for lists that failed)"
    )
    yield f"{author['seconds']:.0f} seconds for the first two"


def prompts(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the prompts by hash, with their length and tokens."""
    first = [row for row in rows if not row["again"]]
    retries = [row for row in rows if row["again"]]
    read = sum(row["prompt_tokens"] for row in rows)
    written = sum(row["completion_tokens"] for row in rows)
    yield f"{len(first)} prompts, {len(retries)} more that show the author its mistake"
    yield f"{read} tokens read, {written} written"
    for row in rows:
        kind = "again" if row["again"] else "first"
        yield (
            f"  {row['prompt']} {kind} {row['characters']:6} characters, sent {row['sent']}, "
            f"answered {row['answered']}, {row['completion_tokens']:5} tokens written"
        )


def lists(author: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line per list: attempts and refusals, or why there is none."""
    result = author["provenance"]
    if result is None:
        yield "no checklist: " + author["finished"]["told"].get("error", {}).get("message", "?")
        return
    rows = result.get("queries", result.get("asked", []))
    made = sum(row["items"] is not None for row in rows)
    at_once = sum(row["items"] is not None and row["attempts"] == 1 for row in rows)
    yield f"{made} of {len(rows)} lists readable, {at_once} of them at the first attempt"
    for row in rows:
        name = row.get("query_id", row.get("step"))
        came = f"FAILED: {row['failure']}" if row["items"] is None else f"{row['items']} items"
        yield f"  {name}: {row['attempts']} attempts, {came}"
        for why in row["refused"] or ():
            yield f"      refused: {why['reason']}"


def refusals(author: Mapping[str, Any]) -> Iterator[str]:
    """Yield the mistakes by kind."""
    counts = author["finished"]["told"].get("refusals")
    if counts:
        mistakes = ", ".join(f"{kind} ({times})" for kind, times in counts["mistakes"].items())
        of = f"{counts['refused_at_first']} of {counts['lists']}"
        yield f"refused at first: {of} ({mistakes or 'nothing'})"


def lint(found: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the static lint findings."""
    if found is None:
        return
    yield f"lint: {found['flagged']} of {found['items']} items flagged, {found['errors']} as errors"
    for kind in found["kinds"]:
        yield f"  {kind['items']:3} {kind['title']}"


def items(checklists: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the written items."""
    for name, listed in checklists.items():
        yield f"{name}:"
        for number, item in enumerate(listed, 1):
            yield f"  {number:2}. {item[:SHOWN_TEXT]}"

"""`rocketeval serve` under many clients, with a judge that is killed and restarted.

    python studies/integrations/soak_serve.py > studies/integrations/recorded/soak_serve.txt

The judge is a process with rules (word_judge.py), so every reward is known. It is killed three
times, once for longer than the server's time limit, and restarted. Clients wait between requests,
20 seconds on average. The server keeps few answers, so that their bound is reached in the first
minute. Prints answers by status, the errors in their words, latencies, and per minute the server's
memory, its kept answers and its requests. The slope of the memory over the second half has a 95%
interval, widened for the autocorrelation of the samples. Memory is flat if all of the interval is
below 0.2 MB per minute.

Exit code 1: a wrong reward, an error without a reason, growing memory, or a stop that is not clean.
`serve_memory.py` shows what the memory consists of.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
from scipy import stats

HERE = Path(__file__).parent
GOOD, BAD = (0.95 + 0.9) / 2, (0.04 + 0.3) / 2
OUTAGES = ((0.25, 3.0), (0.45, 30.0), (0.75, 3.0))
"""When the judge is killed, as a share of the time, and the seconds until it is restarted."""
TIME_LIMIT = 20
"""Seconds after which the server gives up a response."""
KEPT = 1000
"""Answers that the server keeps in memory."""
ITEMS = ["Does the response mention 30 days?", "Is the response polite?"]
BLOCK = 10
"""Samples, one per second, that are averaged before the slope is fitted."""
FLAT = 0.2
"""MB per minute: less than a third of a kept answer per request at the usual load."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment."""

    seconds: float
    megabytes: float
    kept: int
    """Answers in memory."""
    requests: int
    """HTTP requests answered so far."""


@dataclass
class Seen:
    """What the clients saw."""

    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    wrong: int = 0
    """Rewards other than the judge's rules imply."""
    unnamed: int = 0
    """Errors without a reason, and lost connections."""


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_judge(port: int) -> subprocess.Popen[str]:
    """Start the judge and wait until it listens."""
    command = [sys.executable, str(HERE / "word_judge.py"), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if not process.stdout.readline():
        sys.exit(f"The judge did not start on port {port}.")
    return process


def memory(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def take_sample(session: aiohttp.ClientSession, url: str, pid: int, seconds: float) -> Sample:
    """Return the server's memory and figures now."""
    async with session.get(f"{url}/metrics") as reply:
        text = await reply.text()
    kept = re.search(r"^rocketeval_answers_kept (\d+)", text, re.MULTILINE)
    counted = re.search(r"^rocketeval_request_seconds_count (\d+)", text, re.MULTILINE)
    assert kept is not None
    assert counted is not None
    return Sample(seconds, memory(pid), int(kept[1]), int(counted[1]))


async def client(
    session: aiohttp.ClientSession, url: str, until: float, pause: float, seen: Seen
) -> None:
    """Send responses until the end; every answer is checked."""
    while True:
        await asyncio.sleep(random.expovariate(1 / pause))
        if time.monotonic() > until:
            return
        good = random.random() < 0.5
        text = f"It is 30 days. Thanks. {random.random()}" if good else f"No. {random.random()}"
        body = {"query": "Can I get a refund?", "response": text, "checklist": ITEMS}
        began = time.monotonic()
        try:
            async with session.post(f"{url}/v1/score", json=body) as reply:
                found = await reply.json()
                status = reply.status
        except (aiohttp.ClientError, TimeoutError) as error:
            seen.unnamed += 1
            seen.errors[repr(error)] += 1
            continue
        seen.times.append(time.monotonic() - began)
        seen.statuses[str(status)] += 1
        if status == 200:
            expected = GOOD if good else BAD
            seen.wrong += abs(found["score"] - expected) > 0.02
        else:
            seen.unnamed += not found.get("error")
            seen.errors[f"{status}: {found.get('error')}"] += 1


async def load(url: str, given: argparse.Namespace, pid: int) -> tuple[Seen, list[Sample]]:
    """Run the clients, and kill and restart the judge; return what was seen."""
    seen = Seen()
    samples: list[Sample] = []
    judge = start_judge(given.judge_port)
    began = time.monotonic()
    until = began + given.seconds
    restart: float | None = None
    outages = list(OUTAGES)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        work = [
            asyncio.create_task(client(session, url, until, given.pause, seen))
            for _ in range(given.clients)
        ]
        while time.monotonic() < until:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            samples.append(await take_sample(session, url, pid, now - began))
            if restart is not None and now > restart:
                judge = await asyncio.to_thread(start_judge, given.judge_port)
                restart = None
            if outages and now > began + outages[0][0] * given.seconds:
                judge.kill()
                judge.wait()
                restart = now + outages.pop(0)[1]
        await asyncio.gather(*work)
    judge.kill()
    judge.wait()
    return seen, samples


def slope(seconds: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Return the least-squares slope per second and its 95% interval.

    Neighboring samples resemble each other, so the standard error is that of fewer samples: their
    number follows from the autocorrelation of the residuals.
    """
    blocks = max(1, len(values) // BLOCK)
    x = np.array([part.mean() for part in np.array_split(seconds, blocks)])
    y = np.array([part.mean() for part in np.array_split(values, blocks)])
    fit = stats.linregress(x, y)
    left = y - fit.intercept - fit.slope * x
    spread = float(left @ left)
    lag = float(left[1:] @ left[:-1]) / spread if spread > 0 else 0.0
    lag = min(max(lag, 0.0), 0.9)
    effective = max(3.0, len(y) * (1 - lag) / (1 + lag))
    error = fit.stderr * np.sqrt((len(y) - 2) / (effective - 2))
    half = float(stats.t.ppf(0.975, effective - 2) * error)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half


def show_answers(seen: Seen, given: argparse.Namespace) -> bool:
    """Print answers, errors and latencies; return whether none is wrong or without reason."""
    down = ", ".join(f"{length:g} s" for _, length in OUTAGES)
    print(f"{given.clients} clients, {given.seconds:g} s, judge killed 3 times, for {down}")
    print(
        f"answers by status: {dict(seen.statuses)}; wrong rewards: {seen.wrong}; "
        f"errors without reason: {seen.unnamed}"
    )
    for message, count in seen.errors.most_common(5):
        print(f"  {count} x {message}")
    median, late = np.quantile(seen.times, [0.5, 0.99])
    rate = len(seen.times) / given.seconds
    print(f"{rate:.1f} answers/s, median {median:.2f} s, p99 {late:.2f} s")
    return not seen.wrong and not seen.unnamed


def show_memory(samples: list[Sample]) -> bool:
    """Print memory, kept answers and requests per minute; return whether the memory is flat."""
    end = samples[-1].seconds
    print("minute  MB     kept answers  requests")
    for minute in range(1, int(end // 60) + 2):
        last = [one for one in samples if one.seconds <= 60 * minute][-1]
        if last.seconds > 60 * (minute - 1):
            print(f"{minute:6}  {last.megabytes:5.1f}  {last.kept:12,}  {last.requests:8,}")
    second = [one for one in samples if one.seconds > end / 2]
    found = slope(
        np.array([one.seconds for one in second]), np.array([one.megabytes for one in second])
    )
    per_minute, low, high = (60 * value for value in found)
    answered = second[-1].requests - second[0].requests
    minutes = (second[-1].seconds - second[0].seconds) / 60
    each = 1e6 * high * minutes / max(1, answered)
    print(
        f"memory, second half: {per_minute:+.3f} MB per minute (95% interval {low:+.3f} to "
        f"{high:+.3f}), at most {max(0.0, each):.0f} bytes per request"
    )
    if high < FLAT:
        print(f"memory: flat, less than {FLAT:g} MB per minute")
    elif low > FLAT:
        print(f"memory: GROWS by more than {FLAT:g} MB per minute")
    else:
        print(f"memory: UNDECIDED, the interval contains {FLAT:g} MB per minute; run longer")
    return high < FLAT


def main() -> None:
    """Start the server, load it, and stop it with SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pause", type=float, default=20, help="mean seconds between requests")
    parser.add_argument("--kept", type=int, default=KEPT, help="answers that the server keeps")
    parser.add_argument("--judge-port", type=int, default=free_port())
    given = parser.parse_args()
    first = start_judge(given.judge_port)
    command = [sys.executable, "-m", "rocketeval.cli.main", "serve", "--judge", "word-judge"]
    command += ["--base-url", f"http://127.0.0.1:{given.judge_port}/v1", "--port", "0"]
    command += ["--timeout", str(TIME_LIMIT), "--most-answers", str(given.kept)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().split(" at ")[1].strip()
    first.kill()
    first.wait()
    busy = os.getloadavg()[1]
    seen, samples = asyncio.run(load(url, given, server.pid))
    print(f"load average before and after: {busy:.1f}, {os.getloadavg()[1]:.1f}")
    right = show_answers(seen, given)
    flat = show_memory(samples)
    server.send_signal(signal.SIGTERM)
    code = server.wait(60)
    print(f"exit code after SIGTERM: {code}")
    well = right and flat and code == 0
    print("verdict:", "passed" if well else "FAILED")
    sys.exit(not well)


if __name__ == "__main__":
    main()

"""`rocketeval serve` under many clients, with a judge that is killed and restarted.

    python studies/integrations/soak_serve.py --clients 256 --seconds 600

The judge is a process with rules (word_judge.py), so every reward is known: a reward that differs
is wrong and ends the run. Half way the judge is killed, and restarted three seconds later. Prints
requests, outcomes by status, latencies, wrong rewards, and the server's memory at the start of the
load and at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import aiohttp

HERE = Path(__file__).parent
GOOD, BAD = (0.95 + 0.9) / 2, (0.04 + 0.3) / 2
ITEMS = ["Does the response mention 30 days?", "Is the response polite?"]


def start_judge(port: int) -> subprocess.Popen[str]:
    """Start the judge and wait until it listens."""
    command = [sys.executable, str(HERE / "word_judge.py"), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def memory(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def client(
    session: aiohttp.ClientSession, url: str, until: float, seen: Counter[str], times: list[float]
) -> None:
    """Send responses until the end; every answer is checked."""
    while time.monotonic() < until:
        good = random.random() < 0.5
        text = f"It is 30 days. Thanks. {random.random()}" if good else f"No. {random.random()}"
        body = {"query": "Can I get a refund?", "response": text, "checklist": ITEMS}
        began = time.monotonic()
        try:
            async with session.post(f"{url}/v1/score", json=body) as reply:
                found = await reply.json()
                status = reply.status
        except (aiohttp.ClientError, TimeoutError) as error:
            seen[type(error).__name__] += 1
            continue
        times.append(time.monotonic() - began)
        seen[str(status)] += 1
        if status == 200:
            expected = GOOD if good else BAD
            seen["wrong"] += abs(found["score"] - expected) > 0.02
        elif "error" not in found:
            seen["unnamed"] += 1
        elif status == 429:
            await asyncio.sleep(0.2)


async def load(url: str, clients: int, seconds: float, judge_port: int, pid: int) -> None:
    """Run the clients, kill and restart the judge, and print the figures."""
    seen: Counter[str] = Counter()
    times: list[float] = []
    judge = start_judge(judge_port)
    until = time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=0)
    samples: list[float] = []
    async with aiohttp.ClientSession(connector=connector) as session:
        work = [
            asyncio.create_task(client(session, url, until, seen, times)) for _ in range(clients)
        ]
        killed = False
        while time.monotonic() < until:
            await asyncio.sleep(min(2.0, seconds / 20))
            samples.append(memory(pid))
            if not killed and time.monotonic() > until - seconds / 2:
                killed = True
                judge.kill()
                judge.wait()
                await asyncio.sleep(3)
                judge = start_judge(judge_port)
        await asyncio.gather(*work)
    judge.kill()
    judge.wait()
    ordered = sorted(times)
    share = {name: ordered[min(len(ordered) - 1, int(name * len(ordered)))] for name in (0.5, 0.99)}
    print(f"{clients} clients, {seconds:g} s, judge killed and restarted half way")
    print(f"answers by status: {dict(seen)}; wrong rewards: {seen['wrong']}")
    print(
        f"{len(times) / seconds:.0f} answers/s, median {share[0.5]:.2f} s, p99 {share[0.99]:.2f} s"
    )
    quarter = samples[len(samples) // 4]
    print(
        f"memory of the server: {quarter:.0f} MB after a quarter, {samples[-1]:.0f} MB at the end"
    )


def main() -> None:
    """Start the server, load it, and stop it with SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--judge-port", type=int, default=8971)
    given = parser.parse_args()
    first = start_judge(given.judge_port)
    command = [sys.executable, "-m", "rocketeval.cli.main", "serve", "--judge", "word-judge"]
    command += ["--base-url", f"http://127.0.0.1:{given.judge_port}/v1", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().split(" at ")[1].strip()
    first.kill()
    first.wait()
    asyncio.run(load(url, given.clients, given.seconds, given.judge_port, server.pid))
    server.send_signal(signal.SIGTERM)
    print(f"exit code after SIGTERM: {server.wait(60)}")


if __name__ == "__main__":
    main()

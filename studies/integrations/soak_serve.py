"""`rocketeval serve` under many clients, with a judge that is killed and restarted.

    python studies/integrations/soak_serve.py > studies/integrations/recorded/soak_serve.txt

The judge is a process with rules (word_judge.py), so every reward is known. It is killed three
times, once for longer than the server's time limit, and restarted. Clients wait between requests,
20 seconds on average. Prints answers by status, the errors in their words, latencies, and the
server's memory in every tenth of the time. A wrong reward or an error without a reason is exit
code 1.
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
OUTAGES = ((0.25, 3.0), (0.5, 30.0), (0.75, 3.0))
"""When the judge is killed, as a share of the time, and the seconds until it is restarted."""
TIME_LIMIT = 20
"""Seconds after which the server gives up a response."""
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
    session: aiohttp.ClientSession,
    url: str,
    until: float,
    pause: float,
    seen: Counter[str],
    errors: Counter[str],
    times: list[float],
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
            seen["unnamed"] += 1
            errors[repr(error)] += 1
            continue
        times.append(time.monotonic() - began)
        seen[str(status)] += 1
        if status == 200:
            expected = GOOD if good else BAD
            seen["wrong"] += abs(found["score"] - expected) > 0.02
        else:
            seen["unnamed"] += not found.get("error")
            errors[f"{status}: {found.get('error')}"] += 1


async def load(url: str, given: argparse.Namespace, pid: int) -> bool:
    """Run the clients, kill and restart the judge, and print; return whether all is well."""
    seen: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    times: list[float] = []
    judge = start_judge(given.judge_port)
    began = time.monotonic()
    until = began + given.seconds
    connector = aiohttp.TCPConnector(limit=0)
    samples: list[float] = []
    async with aiohttp.ClientSession(connector=connector) as session:
        work = [
            asyncio.create_task(client(session, url, until, given.pause, seen, errors, times))
            for _ in range(given.clients)
        ]
        outages = list(OUTAGES)
        while time.monotonic() < until:
            await asyncio.sleep(1.0)
            samples.append(memory(pid))
            if outages and time.monotonic() > began + outages[0][0] * given.seconds:
                judge.kill()
                judge.wait()
                await asyncio.sleep(outages.pop(0)[1])
                judge = await asyncio.to_thread(start_judge, given.judge_port)
        await asyncio.gather(*work)
    judge.kill()
    judge.wait()
    ordered = sorted(times)
    share = {name: ordered[min(len(ordered) - 1, int(name * len(ordered)))] for name in (0.5, 0.99)}
    down = ", ".join(f"{length:g} s" for _, length in OUTAGES)
    print(f"{given.clients} clients, {given.seconds:g} s, judge killed 3 times, for {down}")
    wrong, unnamed = seen.pop("wrong", 0), seen.pop("unnamed", 0)
    print(
        f"answers by status: {dict(seen)}; wrong rewards: {wrong}; errors without reason: {unnamed}"
    )
    for message, count in errors.most_common(5):
        print(f"  {count} x {message}")
    rate = len(times) / given.seconds
    print(f"{rate:.1f} answers/s, median {share[0.5]:.2f} s, p99 {share[0.99]:.2f} s")
    tenths = [samples[len(samples) * tenth // 10 - 1] for tenth in range(1, 11)]
    print("memory of the server per tenth, MB:", " ".join(f"{value:.0f}" for value in tenths))
    return not wrong and not unnamed


def main() -> None:
    """Start the server, load it, and stop it with SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pause", type=float, default=20, help="mean seconds between requests")
    parser.add_argument("--judge-port", type=int, default=8971)
    given = parser.parse_args()
    first = start_judge(given.judge_port)
    command = [sys.executable, "-m", "rocketeval.cli.main", "serve", "--judge", "word-judge"]
    command += ["--base-url", f"http://127.0.0.1:{given.judge_port}/v1", "--port", "0"]
    # Few answers are kept, so that the limit is reached and memory must stay the same.
    command += ["--timeout", str(TIME_LIMIT), "--most-answers", "1000"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().split(" at ")[1].strip()
    first.kill()
    first.wait()
    well = asyncio.run(load(url, given, server.pid))
    server.send_signal(signal.SIGTERM)
    print(f"exit code after SIGTERM: {server.wait(60)}")
    sys.exit(not well)


if __name__ == "__main__":
    main()

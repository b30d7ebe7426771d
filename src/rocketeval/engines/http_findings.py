"""What the probe of an HTTP server means for a person."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rocketeval.engines.base import Finding
from rocketeval.engines.labels import begin_alike
from rocketeval.engines.probe import Probed, Trial, try_transport
from rocketeval.engines.readout import YES_NO
from rocketeval.engines.server import Server
from rocketeval.engines.transports.registry import OFFERED, TRANSPORTS
from rocketeval.records import Answer

HARDLY = 0.5
"""Less probability than this on all labels together, and the judge hardly answers the question."""


async def wire_findings(probed: Probed) -> Sequence[Finding]:
    """Return what is worth knowing, after trying every request form this server offers."""
    trials = [
        await try_transport(TRANSPORTS[name](probed.wire), probed.reference)
        for name in OFFERED.get(probed.wire.server.kind, ("chat",))
    ]
    return (
        Finding("server", _server(probed.wire.server)),
        _logprobs(probed),
        _labels(probed),
        _mass(probed.reference.answers, probed.wire.called),
        _transport(probed, trials),
        *(_form(trial, probed) for trial in trials if trial.name != probed.transport.name),
    )


def _server(server: Server) -> str:
    return str(server) if server.kind != "unknown" else f"unknown server, version {server.version}"


def _logprobs(probed: Probed) -> Finding:
    listed = len(probed.reference.listed)
    asked = probed.wire.top_logprobs
    many = f"{listed} listed" if listed >= asked else f"{listed} listed of {asked} asked"
    if probed.processed:
        return Finding(
            "logprobs",
            f"processed by the server (temperature changes them), {many}",
            "note",
            "They are asked at a temperature that leaves them be; penalties, top-k, top-p that the "
            "server adds would still show. vLLM: --logprobs-mode raw_logprobs.",
        )
    return Finding("logprobs", f"raw, {many}")


def _labels(probed: Probed) -> Finding:
    wire = probed.wire
    known = {token.strip() for spelled in wire.readout.spelled for token in spelled}
    carrying = [
        f"{token!r} {math.exp(logp):.3f}"
        for token, logp in probed.reference.listed
        if token.strip("\u0120\u2581 \n") in known
    ][:4]
    exact = f"; {len(wire.labels.ids)} label tokens in the vocabulary" if wire.labels else ""
    told = ", ".join(carrying) or "none of the listed tokens"
    name = "yes/no tokens" if wire.words == YES_NO else "label tokens"
    if carrying and wire.labels is None and begin_alike(wire.words):
        return Finding(
            name,
            f"{told}; some labels begin alike",
            "note",
            "The server does not tell its tokens: if 10 is two of them, it passes for a 1. Grade "
            "on labels that do not begin alike, such as 0 to 9.",
        )
    return Finding(name, f"{told}{exact}", "good" if carrying else "bad")


def _mass(answers: Sequence[Answer], called: str) -> Finding:
    masses = [answer.mass for answer in answers if answer.mass is not None]
    least = min(masses, default=0.0)
    if least >= HARDLY:
        return Finding("mass", f"{least:.3f} on {called}, thinking off")
    return Finding(
        "mass",
        f"{least:.3f} on {called}",
        "bad" if least < 0.1 else "note",
        "The judge hardly answers the question: another model, or its thinking switched off, "
        "would do better.",
    )


def _transport(probed: Probed, trials: Sequence[Trial]) -> Finding:
    form = probed.transport
    calls = "all items of a response a call" if form.several else "one item a call"
    told = "exact probabilities" if form.exact else "top tokens, bounds where one is cut off"
    usable = sum(trial.refused is None for trial in trials)
    return Finding("transport", f"{form.name}: {calls}, {told} ({usable} of {len(trials)} work)")


def _form(trial: Trial, probed: Probed) -> Finding:
    if trial.refused is not None:
        return Finding(f"  {trial.name}", f"not usable: {trial.refused}", "note")
    apart = max(
        (
            abs(mine.p_yes - theirs.p_yes)
            for mine, theirs in zip(trial.answers, probed.reference.answers, strict=True)
            if mine.p_yes is not None and theirs.p_yes is not None
        ),
        default=0.0,
    )
    return Finding(f"  {trial.name}", f"works, p_yes within {apart:.1g} of chat")

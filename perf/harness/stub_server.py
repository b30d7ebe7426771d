"""A server that answers at once in vLLM's format, so that only the client's cost is measured.

    python -m harness.stub_server      prints its port, serves until terminated

It has a vocabulary of labels and characters, a chat template, and a few canned answers chosen by
the prompt, which reveals a client that mixes up answers.
"""

from __future__ import annotations

import asyncio
import math
import signal
import zlib
from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

MODEL = "stub"
HEAD, TAIL = "<|user|>\n", "<|end|>\n<|assistant|>\n"
YES = ("Yes", " Yes", "yes", "YES")
NO = ("No", " No", "no", "NO")
LABELS = {text: number for number, text in enumerate((*YES, *NO))}
FILLERS = ("The", "It", "I", "This", "In", "A", "There", "To", "As", "Based", "We", "Answer")
VARIANTS = 16
PROMPT_TOKENS = 440


def encode(text: str) -> list[int]:
    """Return one token for a label, else one per character."""
    return [LABELS[text]] if text in LABELS else [100 + ord(character) for character in text]


def decode(tokens: Sequence[int]) -> str:
    """Return the text of `tokens`; the inverse of `encode`."""
    labels = list(LABELS)
    return "".join(labels[token] if token < 100 else chr(token - 100) for token in tokens)


def logprobs(variant: int) -> dict[str, float]:
    """Return the log-probability of every listed token, labels first."""
    p_yes = 0.9 * (variant + 0.5) / VARIANTS
    weights = (0.7, 0.2, 0.07, 0.03)
    result = {text: math.log(p_yes * share) for text, share in zip(YES, weights, strict=True)}
    result |= {
        text: math.log((0.9 - p_yes) * share) for text, share in zip(NO, weights, strict=True)
    }
    return result | {
        filler: math.log(0.1 / 13 - number * 1e-4) for number, filler in enumerate(FILLERS)
    }


def chat_choice(variant: int, *, exact: bool) -> bytes:
    """Return a chat completion's choice without its index, which the caller puts first."""
    result = {text: logp for text, logp in logprobs(variant).items() if not exact or text in LABELS}
    names = {text: f"token_id:{LABELS[text]}" if exact else text for text in result}
    rows = [
        {"token": names[text], "logprob": logp, "bytes": list(names[text].encode())}
        for text, logp in result.items()
    ]
    choice = {
        "message": {
            "role": "assistant",
            "content": "Yes",
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        },
        "logprobs": {"content": [{**rows[0], "top_logprobs": rows}]},
        "finish_reason": "length",
        "stop_reason": None,
        "token_ids": None,
    }
    return orjson.dumps(choice)[1:]


def text_choice(variant: int) -> bytes:
    """Return a text completion's choice without its index, which the caller puts first."""
    result = {
        f"token_id:{LABELS[text]}": logp
        for text, logp in logprobs(variant).items()
        if text in LABELS
    }
    first = next(iter(result))
    choice = {
        "text": "Yes",
        "logprobs": {
            "text_offset": [0],
            "token_logprobs": [result[first]],
            "tokens": [first],
            "top_logprobs": [result],
        },
        "finish_reason": "length",
        "stop_reason": None,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
    }
    return orjson.dumps(choice)[1:]


EXACT = [chat_choice(variant, exact=True) for variant in range(VARIANTS)]
LISTED = [chat_choice(variant, exact=False) for variant in range(VARIANTS)]
TEXTS = [text_choice(variant) for variant in range(VARIANTS)]


def completed(choices: Sequence[bytes]) -> bytes:
    """Return a complete reply around the choices."""
    rows = b",".join(b'{"index":%d,' % index + rest for index, rest in enumerate(choices))
    usage = {
        "prompt_tokens": PROMPT_TOKENS * len(choices),
        "total_tokens": (PROMPT_TOKENS + 1) * len(choices),
        "completion_tokens": len(choices),
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    return (
        b'{"id":"cmpl-0","object":"chat.completion","created":0,"model":"stub","choices":['
        + rows
        + b'],"service_tier":null,"system_fingerprint":"stub","usage":'
        + orjson.dumps(usage)
        + b',"prompt_logprobs":null,"kv_transfer_params":null}'
    )


def variant_of(prompt: str) -> int:
    """Return the number of a prompt's canned answer, with or without the template around it."""
    plain = prompt.removeprefix(HEAD).removesuffix(TAIL)
    return zlib.crc32(plain.encode()) % VARIANTS


def content(messages: Sequence[dict[str, Any]]) -> str:
    """Return the user's text."""
    return str(messages[-1]["content"])


def answer_post(path: str, body: dict[str, Any]) -> bytes | None:
    """Return the reply to a request; None if the stub lacks the endpoint."""
    if path == "/v1/chat/completions":
        canned = EXACT if "logprob_token_ids" in body else LISTED
        return completed([canned[variant_of(content(body["messages"]))]])
    if path == "/v1/chat/completions/batch":
        canned = EXACT if "logprob_token_ids" in body else LISTED
        return completed([canned[variant_of(content(turns))] for turns in body["messages"]])
    if path == "/v1/completions":
        return completed([TEXTS[variant_of(prompt)] for prompt in body["prompt"]])
    if path == "/tokenize":
        text = HEAD + content(body["messages"]) + TAIL if "messages" in body else body["prompt"]
        return orjson.dumps({"tokens": encode(text)})
    if path == "/detokenize":
        return orjson.dumps({"prompt": decode(body["tokens"])})
    return b'{"success":true}' if path == "/reset_prefix_cache" else None


async def handle(request: web.BaseRequest) -> web.Response:
    """Answer any request at once."""
    reply: bytes | None = None
    if request.path == "/v1/models":
        reply = orjson.dumps({"data": [{"id": MODEL, "owned_by": "vllm", "max_model_len": 8192}]})
    elif request.path == "/version":
        reply = b'{"version":"stub"}'
    elif request.method == "POST":
        reply = answer_post(request.path, orjson.loads(await request.read()))
    if reply is None:
        return web.Response(status=404, body=b"{}", content_type="application/json")
    return web.Response(body=reply, content_type="application/json")


async def main() -> None:
    """Serve on a free port until terminated."""
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())

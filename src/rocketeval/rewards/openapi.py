"""The OpenAPI description of the server's routes, for client generators and API browsers."""

from __future__ import annotations

from typing import Any

from rocketeval._version import __version__

__all__ = ["OPENAPI", "SCORE_FIELDS"]

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_NUMBER = {"type": "number"}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_NUMBERS = {"type": "array", "items": _NUMBER}
_TEXTS = {"type": "array", "items": _TEXT}
_ITEMS = {
    "description": "Texts, or objects with `text`, `weight` and more; a text has one item per "
    "line. Without it, the packaged checklist for all queries is used.",
    "anyOf": [
        {"type": "array", "items": {"anyOf": [_TEXT, {"type": "object", "required": ["text"]}]}},
        _TEXT_OR_NULL,
    ],
}
_TURN = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": _TEXT, "content": _TEXT},
}
SCORE_FIELDS: dict[str, Any] = {
    "query": _TEXT,
    "response": _TEXT,
    "checklist": _ITEMS,
    "reference": {**_TEXT_OR_NULL, "description": "A correct answer, for items that use it."},
    "system": {**_TEXT_OR_NULL, "description": "The system prompt of the conversation."},
    "context": {"type": ["array", "null"], "items": _TEXT, "description": "Retrieved texts."},
    "history": {"type": ["array", "null"], "items": _TURN, "description": "Earlier turns."},
}
"""The fields of a request for one score, with their schemas."""


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object; without names, all its properties are required."""
    return {
        "type": "object",
        "required": list(required or properties),
        "properties": properties,
    }


_SCHEMAS = {
    "ScoreRequest": {
        **_object(SCORE_FIELDS, "query", "response"),
        "additionalProperties": False,
    },
    "Item": _object(
        {
            "text": _TEXT,
            "weight": _NUMBER,
            "status": {**_TEXT, "description": "`ok`, or why there is no certain answer."},
            "p_yes": {**_NUMBER_OR_NULL, "description": "The judge's probability of yes."},
            "value": {**_NUMBER_OR_NULL, "description": "What the item adds, from 0 to 1."},
        }
    ),
    "Score": _object(
        {
            "score": {**_NUMBER, "description": "From 0 to 1."},
            "low": {**_NUMBER, "description": "Proven lower bound of the score."},
            "high": {**_NUMBER, "description": "Proven upper bound of the score."},
            "judge": {**_TEXT_OR_NULL, "description": "Null if code checks decided every item."},
            "reused": {"type": "integer", "description": "Answers that cost no request."},
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
        }
    ),
    "RewardsRequest": _object(
        {
            "query": {**_TEXTS, "description": "Each a prompt with its response."},
            "prompts": _TEXTS,
            "labels": {
                "type": ["array", "null"],
                "items": _ITEMS,
                "description": "A checklist per response, as a list, its JSON, or lines.",
            },
        },
        "query",
        "prompts",
    ),
    "Rewards": _object(
        {
            "rewards": _NUMBERS,
            "scores": {**_NUMBERS, "description": "The same, for OpenRLHF's dynamic filtering."},
            "extra_logs": _object({"reward_failed": _NUMBERS}),
        }
    ),
    "Health": _object(
        {
            "status": {"enum": ["ok", "closing"]},
            "version": _TEXT,
            "waiting": {"type": "integer", "description": "Responses in work."},
        }
    ),
    "Error": _object({"error": _TEXT, "hint": _TEXT}, "error"),
}


def _content(schema: str) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}


def _reply(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, **_content(schema)}


_RETRY_AFTER = {"headers": {"Retry-After": {"schema": {"type": "integer"}}}}
_ERRORS = {
    "400": _reply("The request is wrong.", "Error"),
    "401": _reply("The token is missing or wrong.", "Error"),
    "413": _reply("The request is too large.", "Error"),
    "429": {**_reply("Too much work, or the server stops.", "Error"), **_RETRY_AFTER},
    "502": _reply("The judge gave no answer.", "Error"),
    "504": _reply("The judge took too long.", "Error"),
}


def _post(name: str, summary: str, request: str, description: str, reply: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "security": [{"token": []}, {}],
        "requestBody": {"required": True, **_content(request)},
        "responses": {"200": _reply(description, reply), **_ERRORS},
    }


def _get(name: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": responses}


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "RocketEval", "version": __version__},
    "paths": {
        "/v1/score": {
            "post": _post(
                "score",
                "Grade one response",
                "ScoreRequest",
                "The score from 0 to 1, its bounds and its items.",
                "Score",
            )
        },
        "/v1/rewards": {
            "post": _post(
                "rewards",
                "Rewards of a batch, in the form of OpenRLHF",
                "RewardsRequest",
                "One reward per response.",
                "Rewards",
            )
        },
        "/health": {
            "get": _get(
                "health",
                "Whether the server takes work",
                {
                    "200": _reply("The server works.", "Health"),
                    "503": _reply("The server finishes its work and stops.", "Health"),
                },
            )
        },
        "/metrics": {
            "get": _get(
                "metrics",
                "Figures for Prometheus",
                {
                    "200": {
                        "description": "Prometheus' text format.",
                        "content": {"text/plain": {"schema": _TEXT}},
                    }
                },
            )
        },
        "/openapi.json": {
            "get": _get(
                "openapi",
                "This description",
                {
                    "200": {
                        "description": "An OpenAPI document.",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            )
        },
    },
    "components": {
        "schemas": _SCHEMAS,
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
}
"""The description of the API."""

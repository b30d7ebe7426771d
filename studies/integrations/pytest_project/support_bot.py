"""A support bot for the example: a table of replies, with a version that regressed."""

from __future__ import annotations

import os

GOOD = "Yes. {about} Thanks for asking, and tell me if I can help further."
BAD = "I am not sure. Look at the website."
FACTS = {
    "refund": "You can return it within 30 days for a full refund.",
    "shipping": "Shipping takes 3 to 5 days.",
    "password": "Click on Forgot password to reset it.",
    "invoice": "You find the invoice under Orders.",
    "warranty": "The warranty lasts 2 years.",
    "pickup": "You can pick it up in our store.",
    "gift": "We wrap it as a gift for 4 euros.",
    "size": "You can exchange the size within 30 days.",
}


def reply(query: str) -> str:
    """Return the bot's reply; with BOT_VERSION=2 it lost its facts."""
    topic = next((name for name in FACTS if name in query.lower()), "refund")
    return BAD if os.environ.get("BOT_VERSION") == "2" else GOOD.format(about=FACTS[topic])

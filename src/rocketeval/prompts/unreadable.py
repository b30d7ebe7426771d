"""What is wrong with a text that an author wrote: told to the author, and counted by its kind."""

from __future__ import annotations

from rocketeval.errors import ChecklistError

LONGEST_QUOTE = 60
"""Characters of the author's own text in a reason."""


class Unreadable(ChecklistError):
    """An author's text cannot be used; it is asked again, so that no user meets this error."""

    def __init__(self, mistake: str, message: str) -> None:
        super().__init__(message)
        self.mistake = mistake
        """The kind of mistake, in words that are the same for all of its kind."""


def quoted(text: str) -> str:
    """Return the beginning of a text, as a reason quotes it.

    >>> quoted("Sorry."), len(quoted("x" * 1000))
    ("'Sorry.'", 62)
    """
    return repr(text[:LONGEST_QUOTE])

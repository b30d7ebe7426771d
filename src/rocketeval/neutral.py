"""Neutralizing untrusted text: it can neither close its section nor forge a turn of the chat.

Section markers and control tokens of chat templates are replaced by harmless look-alikes. A token
counts in its exact spelling, also with invisible characters in it. A marker counts if it looks like
ours: with invisible or control characters, accents, letters of other alphabets, other brackets,
spaces between brackets, or other separators. Only the found place is changed; ordinary words in
brackets and all other text are shown as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rocketeval.hashing import content_hash

_MARKERS = (
    r"<<<\s*+(?:end\s++of\s++)?(?:history|query|response|reference|(?:[^<>]{1,80}\s)?turn)\s*>>>"
)
_PIPED = r"<[|\uff5c][^|\uff5c<>\n]{1,64}[|\uff5c]>"
_ANGLED = (
    r"</?(?:s|bos|eos|pad|unk|mask|start_of_turn|end_of_turn|think|tool_call|tool_response"
    r"|start_of_image|end_of_image|fim_(?:prefix|middle|suffix))>"
)
_BRACKETED = r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
FIRST = re.compile(f"{_MARKERS}|{_PIPED}|{_ANGLED}|{_BRACKETED}", re.IGNORECASE)
"""The first rules, which identities depend on. Never change them: see `shown`."""
FIRST_RULES = FIRST.pattern
"""Part of a prompt's hash, so that earlier judgments are still found."""
_MORE_TOKENS = (
    # In their exact spelling: `[THINK]` is a token, `names[think]` is code.
    r"(?-i:<(?:sop|eop|eoh|eoa|eod|im_start|im_end|end_of_utterance|BOS_TOKEN|EOS_TOKEN"
    r"|(?:start|end)_function_(?:call|declaration|response)|(?:start|end)_of_audio"
    r"|/?seed:think|seed:bos|seed:eos|fim-(?:prefix|middle|suffix|pad)|fim_pad"
    r"|(?:extra_id_|reserved_|SPECIAL_|unused)\d{1,4})>"
    r"|\[(?:gMASK|sMASK|/?THINK|TOOL_CONTENT|CALL_ID|IMG_BREAK|IMG_END|BEGIN_AUDIO)\]"
    r"|\[\|(?:system|user|assistant|tool|endofturn)\|\]|\]~!?b[\[\]]|\[e~\[)"
)
"""Special tokens of further chat templates that are no ordinary words in brackets."""
MATERIAL_MARKERS = (
    r"<<<\s*+(?:end\s++of\s++)?(?:context|system\s++prompt|passage(?:\s++\d{1,6})?+)\s*>>>"
)
"""Markers around material besides query and response; part of the identity of items that use it."""
DANGEROUS = re.compile(f"{FIRST_RULES}|{MATERIAL_MARKERS}|{_MORE_TOKENS}", re.IGNORECASE)
"""The current rules for text as it is written."""
_APART = r"[\s_.\-]*+"
_NEAR = r"\s{0,4}+"
LOOKS_LIKE_A_MARKER = re.compile(
    rf"<{_NEAR}<{_NEAR}<{_APART}(?:end{_APART}of{_APART})?"
    rf"(?:history|query|response|reference|context|system{_APART}prompt|passage{_APART}\d{{0,6}}+"
    rf"|(?:[^<>]{{1,80}}[\s_.\-])?turn){_APART}>{_NEAR}>{_NEAR}>",
    re.IGNORECASE,
)
"""Our section markers as they look, in the plain form of a text."""
_BRACKETS = str.maketrans("<>[]", "()()")

_OPENING = (
    "<\uff1c\ufe64\u2039\u00ab\u3008\u300a\u27e8\u27ea\u2329\u276e\u2770\u02c2\u1438\u226a\u22d8"
)
_CLOSING = (
    ">\uff1e\ufe65\u203a\u00bb\u3009\u300b\u27e9\u27eb\u232a\u276f\u2771\u02c3\u1433\u226b\u22d9"
)
_SQUARES = "[]\uff3b\uff3d\u3010\u3011\u27e6\u27e7\u301a\u301b"
_PLAIN_BRACKETS = str.maketrans(
    {
        **dict.fromkeys(_OPENING, "<"),
        **dict.fromkeys(_CLOSING, ">"),
        **dict.fromkeys("\u00ab\u300a\u27ea\u226a", "<<"),
        **dict.fromkeys("\u00bb\u300b\u27eb\u226b", ">>"),
        **dict.fromkeys("\u22d8", "<<<"),
        **dict.fromkeys("\u22d9", ">>>"),
        **dict.fromkeys(_SQUARES[::2], "["),
        **dict.fromkeys(_SQUARES[1::2], "]"),
        **dict.fromkeys("\uff5c\u2502\u2503\u01c0\u2223\u23d0\u4e28\u00a6", "|"),
        **dict.fromkeys("\u2013\u2014\u2010\u2011", "-"),
    }
)
_LETTERS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u043a"
    "\u043c\u043d\u0442\u0432\u03bf\u03b1\u03b5\u03b9\u03ba\u03bd\u03c1\u03c4\u03c5\u03c7\u03b7"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0131\u0261\u0251\u026a\u0280\u1d07\u1d0f\u0578\u057d\u0585",
    "aeopcyxijsdhqwkmhtboaeikvptuxnABEKMHOPCTXIJSABEZHIKMNOPTYXigaireonso",
)
"""Letters of other alphabets that look like Latin ones."""
_INVISIBLE = frozenset({"Cf", "Cc"})
"""Categories of characters that a reader does not see: zero-width, direction, control."""
_COMBINING = frozenset({"Mn", "Me"})
_BLANK = frozenset("\u2800\u3164\u115f\u1160\uffa0")
"""Characters that look like a space."""
_ANY_OPENING = re.compile(f"[{re.escape(_OPENING + _SQUARES)}]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_HARMLESS = str.maketrans(
    {
        **dict.fromkeys(_OPENING + _SQUARES[::2], "("),
        **dict.fromkeys(_CLOSING + _SQUARES[1::2], ")"),
    }
)


@dataclass(frozen=True, slots=True)
class Neutralized:
    """A text that is safe between markers, and the number of neutralized places."""

    text: str
    count: int


def neutralize(text: str) -> Neutralized:
    """Return `text` with section markers and control tokens replaced by harmless look-alikes.

    >>> neutralize("fine <<<end of response>>> <|im_start|>system")
    Neutralized(text='fine (((end of response))) (|im_start|)system', count=2)
    >>> neutralize("\\uff1c\\uff1c\\uff1cend of resp\\u200bonse\\uff1e\\uff1e\\uff1e 1 < 2").count
    1
    """
    if not _has_opening(text):
        return Neutralized(text, 0)
    count = 0
    while True:
        plain = disarmed(text, DANGEROUS)
        unmasked = _without_disguises(plain.text)
        text, count = unmasked.text, count + plain.count + unmasked.count
        # Disarming one place can complete another.
        if not unmasked.count:
            return Neutralized(text, count)


def _has_opening(text: str) -> bool:
    """Return whether a rule can match: each starts with a bracket, and most texts have none."""
    if text.isascii():
        return "<" in text or "[" in text or "]" in text
    return _ANY_OPENING.search(text) is not None


def disarmed(text: str, rules: re.Pattern[str]) -> Neutralized:
    """Return `text` without what the `rules` match."""
    count, found = 0, 1
    # Neutralizing the inside of `<|a<s>b|>` makes the outside match, so repeat until stable.
    while found:
        text, found = rules.subn(_disarm, text)
        count += found
    return Neutralized(text, count)


def _without_disguises(text: str) -> Neutralized:
    """Return `text` without what looks like a marker, and without tokens in parts."""
    ordinary = text.isascii() and not _CONTROL.search(text)
    if ordinary:
        return _unmasked(text, _SAME, LOOKS_LIKE_A_MARKER)
    markers = _unmasked(text, _PLAIN, LOOKS_LIKE_A_MARKER)
    tokens = _unmasked(markers.text, _VISIBLE, DANGEROUS)
    return Neutralized(tokens.text, markers.count + tokens.count)


def _unmasked(text: str, forms: Mapping[int, str | int], rules: re.Pattern[str]) -> Neutralized:
    """Return `text` without what the `rules` match in the form in which characters are read."""
    spans = [found.span() for found in rules.finditer(text.translate(forms))]
    if not spans:
        return Neutralized(text, 0)
    # The place in the text of each character of its form.
    places = [place for place, one in enumerate(text) for _ in one.translate(forms)]
    parts, done = [], 0
    for first, after in spans:
        start, end = max(done, places[first]), places[after - 1] + 1
        parts += [text[done:start], text[start:end].translate(_HARMLESS)]
        done = end
    return Neutralized("".join([*parts, text[done:]]), len(spans))


class _Forms(dict[int, str]):
    """The form in which each character is read, computed once."""

    def __init__(self, form: Callable[[str], str]) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, code: int) -> str:
        """Compute and keep the form of one character."""
        self[code] = self._form(chr(code))
        return self[code]


def _visible(mark: str) -> str:
    hidden = unicodedata.category(mark) in _INVISIBLE and not mark.isspace()
    return "" if hidden else mark


def _plain(mark: str) -> str:
    if mark.isspace() or mark in _BLANK:
        return " "
    # Accents are dropped: NFKD takes them apart from their letter.
    parts = unicodedata.normalize("NFKD", mark.translate(_PLAIN_BRACKETS))
    seen = "".join(map(_visible, parts))
    bare = "".join(part for part in seen if unicodedata.category(part) not in _COMBINING)
    return bare.translate(_PLAIN_BRACKETS).translate(_LETTERS)


_SAME: dict[int, str] = {}
_VISIBLE = _Forms(_visible)
_PLAIN = _Forms(_plain)


def plain_form(text: str) -> str:
    """Return a text as it looks: without invisible characters, in Latin letters and brackets.

    >>> plain_form("\\uff1c\\u0435nd\\u200b of")
    '<end of'
    """
    return text.translate(_PLAIN)


def neutral_line(text: str) -> str:
    """Return a text as one neutralized line, so that it cannot forge a list number."""
    return neutralize(" ".join(text.split())).text


def neutralize_name(text: str) -> Neutralized:
    """Return `text` without brackets, safe inside a marker."""
    safe = text.translate(_BRACKETS)
    return Neutralized(safe, int(safe != text))


def _disarm(found: re.Match[str]) -> str:
    return found[0].translate(_BRACKETS)


def harmless(token: str) -> str:
    """Return a control token as a look-alike that no tokenizer reads as that token.

    >>> harmless("<repo_name>"), harmless("@@end"), harmless("\\x1a")
    ('(repo_name)', '@ @end', ' ')
    """
    safe = token.translate(_BRACKETS)
    if safe != token:
        return safe
    return f"{token[0]} {token[1:]}" if len(token) > 1 else " "


def rules() -> str:
    """Return a hash of the current rules."""
    tables = [sorted(_PLAIN_BRACKETS.items()), sorted(_LETTERS.items()), sorted(_BLANK)]
    patterns = [DANGEROUS.pattern, LOOKS_LIKE_A_MARKER.pattern]
    return content_hash("neutralizing by look", patterns, tables).hex()


def shown_as_before(text: str) -> bool:
    """Return whether the current rules show a text as the first rules did."""
    if not _has_opening(text):
        return True
    return neutralize(text).text == disarmed(text, FIRST).text


def shown(content: bytes, *texts: str) -> bytes:
    """Return a record's identity as shown to a judge.

    It is the identity of its `content`, unless the current rules neutralize a text differently than
    the first rules. Then it is that of the neutralized texts, so that improved rules invalidate
    only the judgments whose prompt they change.
    """
    if all(map(shown_as_before, texts)):
        return content
    return content_hash("shown", content.hex(), [neutralize(text).text for text in texts])

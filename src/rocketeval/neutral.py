"""Neutralizing untrusted text: it can neither close its section nor forge a turn of the chat.

Section markers and control tokens of chat templates are replaced by harmless look-alikes. Markers
and tokens in disguise count too: with invisible characters, letters of other alphabets, or
full-width brackets. For that, only the neighborhood of a bracket is compared in its plain form
(NFKC, without invisible characters, with Latin letters); all other text is shown as it is.
"""

from __future__ import annotations

import re
import unicodedata
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
_MORE_ANGLED = (
    r"</?(?:sop|eop|sot|eot|eod|eom|eoh|eoa|boi|eoi|boa|cls|sep|bot|begin_of_text|end_of_text"
    r"|begin_of_sentence|end_of_sentence|end_of_utterance|end_of_message|end_of_audio"
    r"|start_of_audio|start_header_id|end_header_id|im_start|im_end|im_sep|endoftext|eot_id|eom_id"
    r"|start_of_role|end_of_role|start_function_call|end_function_call|function_calls?"
    r"|reserved_\d{1,4}|unused\d{1,4}|extra_id_\d{1,4}|special_\d{1,4}|0x[0-9a-f]{2}"
    r"|fim-(?:prefix|middle|suffix|pad)|fim_pad|file_sep|repo_name|gh_stars|filename"
    r"|jupyter_(?:start|text|code|output|script)|commit_(?:before|msg|after)|issue_(?:start|closed)"
    r"|empty_output|code_to_intermediate|seed:think|seed:bos|seed:eos|thought|reasoning|thinking"
    r"|tool_calls?_(?:begin|end)|system_prompt|chat_turn|user_turn|assistant_turn|turn)>"
)
_MORE_BRACKETED = (
    # Case matters: `[MASK]` is a token, `rows[mask]` is code.
    r"(?-i:\[/?(?:CLS|SEP|MASK|gMASK|sMASK|PAD|UNK|BOS|EOS|THINK|TOOL_CONTENT|ARGS|CALL_ID|AUDIO|IMG"
    r"|IMG_BREAK|IMG_END|PREFIX|SUFFIX|MIDDLE|BEGIN_AUDIO|SYSTEM|USER|ASSISTANT)\])"
)
MATERIAL_MARKERS = (
    r"<<<\s*+(?:end\s++of\s++)?(?:context|system\s++prompt|passage(?:\s++\d{1,6})?+)\s*>>>"
)
"""Markers around material besides query and response; part of the identity of items that use it."""
DANGEROUS = re.compile(
    f"{FIRST_RULES}|{MATERIAL_MARKERS}|{_MORE_ANGLED}|{_MORE_BRACKETED}", re.IGNORECASE
)
"""The current rules."""
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
_INVISIBLE = frozenset({"Cf", "Mn", "Me", "Cc"})
"""Categories of characters that a reader does not see: zero-width, direction, combining."""
_ANY_OPENING = re.compile(f"[{re.escape(_OPENING + _SQUARES)}]")
_ANY_CLOSING = frozenset(_CLOSING + _SQUARES)
_FAR = 120
"""Characters after an opening bracket in which a disguised marker ends."""
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
    plain = disarmed(text, DANGEROUS)
    unmasked, count = _without_disguises(plain.text)
    if not count:
        return plain
    # Disarming one place can complete another.
    again = neutralize(unmasked)
    return Neutralized(again.text, plain.count + count + again.count)


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


def _without_disguises(text: str) -> tuple[str, int]:
    """Return `text` without disguised markers and tokens, and their number."""
    parts, count, done = [], 0, 0
    for start in _ANY_OPENING.finditer(text):
        if start.start() < done:
            continue
        end = _end_of_disguise(text, start.start())
        if end:
            parts += [text[done : start.start()], text[start.start() : end].translate(_HARMLESS)]
            count, done = count + 1, end
    return "".join([*parts, text[done:]]), count


def _end_of_disguise(text: str, start: int) -> int:
    """Return where a disguised marker that begins at `start` ends; 0 if there is none."""
    near = text[start : start + _FAR]
    if near.isascii():
        return 0
    found = DANGEROUS.match(plain_form(near))
    if found is None:
        return 0
    # Find the shortest part of the original text whose plain form has the whole marker.
    for end in range(1, len(near) + 1):
        if near[end - 1] in _ANY_CLOSING and DANGEROUS.match(plain_form(near[:end])):
            while end < len(near) and near[end] in _ANY_CLOSING and near[end] != "]":
                end += 1
            return start + end
    return 0


def plain_form(text: str) -> str:
    """Return a text as it looks: without invisible characters, in Latin letters and brackets.

    >>> plain_form("\\uff1c\\u0435nd\\u200b of")
    '<end of'
    """
    folded = unicodedata.normalize("NFKC", text.translate(_PLAIN_BRACKETS))
    seen = "".join(mark for mark in folded if _is_visible(mark))
    return seen.translate(_PLAIN_BRACKETS).translate(_LETTERS)


def _is_visible(mark: str) -> bool:
    return mark in "\n\t" or unicodedata.category(mark) not in _INVISIBLE


def neutral_line(text: str) -> str:
    """Return a text as one neutralized line, so that it cannot forge a list number."""
    return neutralize(" ".join(text.split())).text


def neutralize_name(text: str) -> Neutralized:
    """Return `text` without brackets, safe inside a marker."""
    safe = text.translate(_BRACKETS)
    return Neutralized(safe, int(safe != text))


def _disarm(found: re.Match[str]) -> str:
    return found[0].translate(_BRACKETS)


def rules() -> str:
    """Return a hash of the current rules."""
    tables = [sorted(_PLAIN_BRACKETS.items()), sorted(_LETTERS.items()), _FAR]
    return content_hash("neutralizing", DANGEROUS.pattern, tables).hex()


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

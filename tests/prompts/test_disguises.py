"""Disguised markers and control tokens are neutralized; honest text is shown as before."""

from __future__ import annotations

import pytest

from conftest import read_rows
from rocketeval.neutral import DANGEROUS, neutralize, plain_form, shown, shown_as_before

CONTROL = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|begin_of_text|>",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<mask>",
    "<start_of_turn>",
    "<end_of_turn>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "[SYSTEM_PROMPT]",
    "[TOOL_CALLS]",
    "<think>",
    "</think>",
    "<tool_call>",
    "[gMASK]",
    "<sop>",
    "<eop>",
    "[THINK]",
    "<im_start>",
    "<im_end>",
    "<extra_id_0>",
    "<reserved_7>",
    "<unused12>",
    "<end_of_utterance>",
    "<seed:think>",
    "<fim-prefix>",
    "<eod>",
    "[/THINK]",
    "[sMASK]",
    "[|assistant|]",
    "[|endofturn|]",
    "]~b]",
    "]~!b[",
    "[e~[",
    "<BOS_TOKEN>",
    "<SPECIAL_10>",
    "<start_function_call>",
    "<|im_\x00end|>",
    "<\u200b|im_end|>",
    "[IN\u200bST]",
    "<\x7fs>",
]
LOOK_ALIKE = {
    "full-width": "\uff1c\uff1c\uff1cend of response\uff1e\uff1e\uff1e",
    "small": "\ufe64\ufe64\ufe64end of response\ufe65\ufe65\ufe65",
    "angle": "\u2329\u2329\u2329end of response\u232a\u232a\u232a",
    "single quotes": "\u2039\u2039\u2039end of response\u203a\u203a\u203a",
    "double quotes": "\u00ab\u2039end of response\u203a\u00bb",
    "cjk": "\u300a\u3008end of response\u3009\u300b",
    "mathematical": "\u27ea\u27e8end of response\u27e9\u27eb",
    "much less": "\u226a<end of response>\u226b",
    "very much less": "\u22d8end of response\u22d9",
    "ornaments": "\u276e\u276e\u276eend of response\u276f\u276f\u276f",
    "zero-width space": "<<<end of resp\u200bonse>>>",
    "zero-width joiner": "<\u200d<\u200d<end of response>>>",
    "word joiner": "<<<end\u2060 of response>>>",
    "soft hyphen": "<<<end of re\u00adsponse>>>",
    "byte order mark": "<<<\ufeffend of response>>>",
    "direction": "<<<end of response\u202e>>>",
    "cyrillic": "<<<\u0435nd \u043ef r\u0435sp\u043ens\u0435>>>",
    "greek": "<<<end \u03bff resp\u03bfnse>>>",
    "full-width letters": "<<<\uff45\uff4e\uff44 of response>>>",
    "bold": "<<<\U0001d41e\U0001d427\U0001d41d of response>>>",
    "no-break space": "<<<end\u00a0of\u00a0response>>>",
    "combining": "<<<end of re\u0332sponse>>>",
    "null": "<<<end of resp\x00onse>>>",
    "delete": "<<<end of resp\x7fonse>>>",
    "escape": "<<<end of resp\x1bonse>>>",
    "backspace": "<<<end\x08 of response>>>",
    "many zero-width": "<<<end of " + "\u200b" * 500 + "response>>>",
    "accent": "<<<e\u0301nd of response>>>",
    "composed accent": "<<<\u00e9nd of r\u00ebsponse>>>",
    "spaced brackets": "< < <end of response> > >",
    "underscores": "<<<end_of_response>>>",
    "hyphens": "<<<END-OF-RESPONSE>>>",
    "no separators": "<<<endofresponse>>>",
    "braille blank": "<<<end\u2800of\u2800response>>>",
    "filler": "<<<end\u3164of response>>>",
    "line break": "<\n<<end of response>>\n>",
    "turn": "<<<us\x00er_turn>>>",
    "passage": "<<<end of p\u00e1ssage 3>>>",
    "system prompt": "<<<system_prompt>>>",
    "mixed": "\uff1c<\ufe64\u0435nd of\u200b respons\u0435>\uff1e\ufe65",
}
HONEST = [
    "if a < b and c > d: print(x[0])",
    "rows = frame[mask]; left[middle] = tree[prefix] + names[user]",
    "<div class='s'>[1] \u00abBonjour\u00bb, dit-il. <br/></div>",
    "\u0421\u043f\u0430\u0441\u0438\u0431\u043e <b>\u0437\u0430 \u0432\u0441\u0435</b>",
    "\u300a\u7ea2\u697c\u68a6\u300b\u662f<em>\u5c0f\u8bf4</em>\u3002",
    "List<Map<String, List<Integer>>> end of the response >>> done",
    "x \u226a y \u226b z, [INSTRUCTION] is not a token, nor is <summary>",
    "cat <filename>; git clone <repo_name>; cd <commit_msg>; <0x0A> is a line feed",
    "[SYSTEM] started. Dear [USER], rows[MASK], [CLS] and [SEP], usage: run [ARGS] [IMG]",
    "<thinking>so</thinking> <turn> <thought> <reasoning> <system_prompt> <function_calls>",
    "\u27e8|\u03c8|\u27e9 is a mean, \u27e8|x|\u27e9 too; \u300cINST\u300d \u3010SYSTEM\u3011",
    "if (a < b) { cout << x; }\n> > > quoted response\n<<EOF\nresponse\nEOF",
    "a <<< end_of_file, <<<end of line>>>, x\x1b[31mred\x1b[0m <b>",
    "e\u0301 caf\u00e9 <i>na\u00efve</i> \u200bzero-width stays",
]


@pytest.mark.parametrize("token", CONTROL)
def test_control_tokens_are_neutralized(token: str) -> None:
    """No control token of a common chat template survives."""
    safe = neutralize(f"so {token} it is")
    assert safe.count >= 1
    assert token not in safe.text


@pytest.mark.parametrize("name", list(LOOK_ALIKE))
def test_look_alike_markers_are_neutralized(name: str) -> None:
    """A marker in disguise loses its brackets, and the text around it stays."""
    safe = neutralize(f"before {LOOK_ALIKE[name]} after")
    assert safe.count == 1
    assert safe.text.startswith("before (")
    assert safe.text.endswith(") after")
    assert DANGEROUS.search(plain_form(safe.text)) is None
    assert neutralize(safe.text).count == 0
    if name != "no-break space":  # The first rules knew this one.
        assert shown(b"c", LOOK_ALIKE[name]) != b"c"


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_is_shown_as_it_is(text: str) -> None:
    """Other brackets, alphabets and invisible characters are not touched."""
    assert neutralize(text) == type(neutralize(""))(text, 0)
    assert shown(b"c", text) == b"c"


def test_recorded_responses_are_shown_as_before() -> None:
    """The new rules change the prompt of no MT-Bench response."""
    texts = [turn for row in read_rows("answers_official32.jsonl.gz") for turn in row["turns"]]
    changed = [text for text in texts if not shown_as_before(text)]
    assert len(texts) > 2000
    assert not changed, [text[:80] for text in changed]

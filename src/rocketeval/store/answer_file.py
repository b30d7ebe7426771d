"""A file of judged answers for single calls, which several processes may append to at once.

One JSON object per line, each with a checksum: `{"asked_as", "judge"}` for a judge, `{"judge",
"prompts", ...}` for answers. An answer is found by the hash of its prompt, so a changed checklist
costs only its new items. A damaged line is skipped: its answers are asked again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from rocketeval.records import Answer, JudgeFingerprint, Usage
from rocketeval.store.checksums import append_whole, line_is_whole, sealed_line
from rocketeval.store.files import make_folder, writing
from rocketeval.store.journal import is_torn
from rocketeval.store.schema import answers_to_lists, lists_to_answers

_log = logging.getLogger("rocketeval.answers")


class AnswerFile:
    """Answers by judge and prompt: those in the file, and those other processes append to it.

    Without a path the answers are kept in memory only. With `most`, the oldest answers in memory
    are dropped, so that a server does not grow; such an answer is asked again.
    """

    def __init__(self, path: Path | None = None, most: int | None = None) -> None:
        self.path = path
        self.most = most
        self._read_to = 0
        # In a plain dict, finding the oldest key passes over every key deleted before it.
        self._answers: OrderedDict[tuple[str, str], Answer] = OrderedDict()
        self._judges: dict[str, JudgeFingerprint] = {}
        """The latest judge by how it is asked."""
        self._every_judge: dict[str, JudgeFingerprint] = {}
        self.refresh()

    @property
    def answers(self) -> int:
        """Number of answers."""
        return len(self._answers)

    @property
    def judges(self) -> tuple[JudgeFingerprint, ...]:
        """All judges in the file."""
        return tuple(self._every_judge.values())

    def judge(self, asked_as: str) -> JudgeFingerprint | None:
        """Return the judge that was last asked this way; None if there is none."""
        return self._judges.get(asked_as)

    def find(self, judge: JudgeFingerprint, prompts: Sequence[str]) -> dict[int, Answer]:
        """Return the known answers by the position of their prompt; reads what others appended."""
        found = self._known(judge, prompts)
        if len(found) < len(prompts):
            self.refresh()
            found = self._known(judge, prompts)
        return found

    def add_judge(self, asked_as: str, judge: JudgeFingerprint) -> None:
        """Record the judge that answers requests of this kind."""
        if self._judges.get(asked_as) == judge:
            return
        self._append({"asked_as": asked_as, "judge": asdict(judge)})

    def add(
        self,
        judge: JudgeFingerprint,
        answers: Mapping[str, Answer],
        usage: Usage,
        about: str,
    ) -> None:
        """Record answers by the hash of their prompt; `about` says to people what they judge."""
        if answers:
            self._append(
                {
                    "judge": judge.digest.hex(),
                    "about": about,
                    "prompts": list(answers),
                    **answers_to_lists(list(answers.values())),
                    "requests": usage.requests,
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                }
            )

    def refresh(self) -> None:
        """Read the lines that were appended since the last reading."""
        if self.path is None:
            return
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._read_to)
                content = stream.read()
        except FileNotFoundError:
            return
        whole = content[: content.rfind(b"\n") + 1]
        self._read_to += len(whole)
        damaged = sum(not self._read(line) for line in whole.splitlines() if line.strip())
        if damaged:
            _log.warning("%s: %s damaged lines are skipped.", self.path, damaged)

    def _known(self, judge: JudgeFingerprint, prompts: Sequence[str]) -> dict[int, Answer]:
        digest = judge.digest.hex()
        return {
            place: self._answers[digest, prompt]
            for place, prompt in enumerate(prompts)
            if (digest, prompt) in self._answers
        }

    def _append(self, row: Mapping[str, object]) -> None:
        line = sealed_line(row)
        if self.path is None:
            self._read(line)
            return
        with writing(self.path):
            make_folder(self.path.parent)
            # One write to a file opened for appending is not torn by other processes; what a
            # killed process left of its line must not swallow this one.
            with self.path.open("ab+", buffering=0) as stream:
                append_whole(stream.fileno(), (b"\n" if is_torn(stream) else b"") + line)
        self._read(line)

    def _read(self, line: bytes) -> bool:
        """Keep the content of a line; return whether it was readable."""
        if not line_is_whole(line):
            return False
        try:
            row: Any = orjson.loads(line)
            if "asked_as" in row:
                judge = JudgeFingerprint(**row["judge"])
                self._judges[row["asked_as"]] = judge
                self._every_judge[judge.digest.hex()] = judge
            else:
                pairs = zip(row["prompts"], lists_to_answers(row), strict=True)
                for prompt, answer in pairs:
                    self._answers.setdefault((row["judge"], prompt), answer)
                while self.most is not None and len(self._answers) > self.most:
                    self._answers.popitem(last=False)
        except (ValueError, TypeError, KeyError):
            return False
        return True

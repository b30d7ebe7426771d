"""Which column of a table holds what: recognized by name, checked, and described in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rocketeval.benchmarks.cells import (
    OPEN_AND_SAVE,
    WIDE,
    cell_texts,
    cell_value,
    distinct_texts,
    filled_cells,
    is_flag,
    is_number,
    is_numeric,
    is_uncomputed,
    looks_like_candidate,
    maybe_responses,
    snake,
    text_codes,
    wide_by_content,
)
from rocketeval.benchmarks.messages import is_messages
from rocketeval.benchmarks.reading import (
    PLAIN_NUMBER,
    Row,
    both,
    field_hint,
    naming,
    naming_wide,
    readings,
    shown_value,
    why_not_ids,
)
from rocketeval.errors import BenchmarkError, Hint
from rocketeval.text import join_words, near_name

ROLES = {
    "query": "input prompt question instruction user_input query inputs messages conversation "
    "user_prompt user_message request problem",
    "response": "output outputs response completion answer actual_output generation model_output "
    "model_response generated_text prediction reply",
    "candidate": "model generator model_id model_name provider candidate variant version "
    "prompt_version prompt_name system_name",
    "id": "id uid question_id query_id session_id doc_id row_id prompt_id example_id custom_id",
    "reference": "expected_output reference target ground_truth ideal expected expected_response "
    "reference_answer reference_output gold_answer correct_answer best_answer",
    "category": "category tag topic domain subject task",
    "checklist": "checklist checklists checklist_items items criteria rubric",
    "label": "score rating human_score human_rating grade label",
    "labeler": "labeler rater rater_id annotator annotator_id",
    "context": "retrieved_contexts retrieval_context context contexts documents",
    "system": "system system_prompt system_message",
}
"""Names of the columns that hold each part of an example, most usual first."""
COLUMN_NAMES = {role: names.split() for role, names in ROLES.items()}
PART_NAMES = ", ".join(COLUMN_NAMES)


@dataclass(frozen=True, slots=True)
class RefusedColumn:
    """A column that is not used for what its name says, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The column of each part; None if the table has none."""

    query: str
    query_input: str | None = None
    """A column whose text follows the query's, as Alpaca's `input` follows its `instruction`."""
    response: str | None = None
    candidate: tuple[str, ...] = ()
    """Columns whose values, joined, name the candidate."""
    id: str | None = None
    reference: str | None = None
    category: str | None = None
    checklist: str | None = None
    label: str | None = None
    labeler: str | None = None
    """The column that names who gave the label."""
    context: str | None = None
    system: str | None = None
    wide: Mapping[str, str] = field(default_factory=dict)
    """In a wide table: each candidate, and its column."""
    unread: tuple[str, ...] = ()
    """Columns that hold nothing known."""
    seen: frozenset[str] = frozenset()
    """All columns of the first rows, and those that the options name."""
    why_not_ids: str | None = None
    """Why a column of ids is not used; None without such a column."""
    not_labels: RefusedColumn | None = None
    """A column with the name of labels that is not used, because it does not hold numbers."""

    def option(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the mapping as it is written in a config, with the parts `given` as absent."""
        named = {role: getattr(self, role) or "" for role in COLUMN_NAMES}
        if self.query_input:
            named["query"] = f"{self.query}+{self.query_input}"
        named["candidate"] = "+".join(self.candidate)
        return {role: column for role, column in named.items() if column or given.get(role) == ""}


def check_columns(
    given: Mapping[str, str], wide: Sequence[str], columns: list[str], every: Iterable[Row] = ()
) -> None:
    """Raise BenchmarkError if the options name a part or a column that does not exist.

    `columns` are those of the first rows; a named one that only later rows have is added.
    """
    for role in given:
        if role not in COLUMN_NAMES:
            meant = near_name(role, list(COLUMN_NAMES))
            guess = f"Did you mean {meant!r}? " if meant else ""
            raise BenchmarkError(
                f"`columns` names the part {role!r}, which does not exist.",
                hint=f"{guess}Valid: {PART_NAMES}.",
            )
    asked = _parts("query", given.get("query", "query"), columns)
    if len(asked) > 2 or not all(map(str.strip, asked)):
        raise BenchmarkError(
            f"`columns` gives {given['query']!r} as the query, which is one column or at most two "
            "columns joined with `+`.",
            hint=Hint.of("Name it: ", naming(query="COLUMN"), ", or leave this option out."),
        )
    named = [p for role, column in given.items() for p in _parts(role, column, columns) if p]
    late = {each for each in (*named, *wide) if each not in columns}
    if late:
        columns += [each for each in columns_of(every) if each in late]
    for column in (*named, *wide):
        if column not in columns:
            raise BenchmarkError(
                f"The data has no column {column!r}.", hint=field_hint(column, columns)
            )


def _parts(role: str, column: str, columns: Sequence[str]) -> list[str]:
    joined = role in ("candidate", "query") and column not in columns
    return column.split("+") if joined else [column]


def holds(part: str, rows: Iterable[Row]) -> bool:
    """Return whether a column has the name of a part, such as label."""
    return any(snake(each) in COLUMN_NAMES[part] for each in columns_of(rows))


def unread_columns(rows: Iterable[Row], *used: str) -> dict[str, str]:
    """Return the line of a mapping about the columns that are not used; none if all are."""
    unread = [each for each in columns_of(rows) if each not in used]
    return {"not read": join_words(map(repr, unread), most=12)} if unread else {}


def columns_of(rows: Iterable[Row]) -> list[str]:
    """Return the names of all fields, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.values))


def choose_columns(
    given: Mapping[str, str],
    wide: Sequence[str],
    rows: Sequence[Row],
    what: str,
    every: Callable[[], Iterable[Row]] | None = None,
) -> TableColumns:
    """Return the column of each part: the given ones, else those with a known name.

    `rows` are the first ones; `every` reads all of them. Raises BenchmarkError if no column can be
    the query or the response, or if two could.
    """
    columns = columns_of(rows)
    check_columns(given, wide, columns, every() if every else ())
    found: dict[str, list[str]] = {
        role: [each for name in names for each in columns if snake(each) == name]
        for role, names in COLUMN_NAMES.items()
    }
    taken = {part for role, column in given.items() for part in _parts(role, column, columns)}
    taken |= {*wide}
    for role in found:
        free = [column for column in found[role] if column not in taken]
        if role in given and role != "candidate":
            # An empty name says that the table has no such column.
            found[role] = _parts(role, given[role], columns) if given[role] else []
        else:
            found[role] = free
    query, more = (*found["query"], None)[:2] if "query" in given else ("", None)
    if not query:
        query, more = _query(found, rows, columns, what)
    taken |= {query, more or query}
    names = dict.fromkeys(wide) if wide else {}
    by_pattern = {} if wide or "response" in given else _wide_by_name(rows, columns, taken)
    exact = [each for each in found["response"] if each != query]
    if exact and len(by_pattern) > 1 and not (found["candidate"] or given.get("candidate")):
        raise _long_or_wide(what, exact[0], list(by_pattern.values()))
    response = None
    if not wide and (exact or len(by_pattern) < 2):
        response = _response(found, rows, query)
    if names:
        chosen = {column: column for column in names}
    elif response is None:
        others = {part for role, every in found.items() if role != "response" for part in every}
        chosen = by_pattern
        free = [each for each in columns if each not in taken | others]
        if len(by_pattern) < 2:
            chosen = wide_by_content(rows, free)
            if len(chosen) > 1 and not all(map(looks_like_candidate, chosen)):
                raise _which_are_responses(what, list(chosen), rows)
        if len(chosen) < 2:
            if not _holds_conversation(rows, query):
                raise _no_response(what, columns, rows)
            chosen = {}
        unclear = maybe_responses(rows, free, chosen.values())
        if unclear:
            raise _figures_or_responses(what, columns, unclear, [*chosen.values()])
    else:
        chosen = {}
    named_by = _parts("candidate", given["candidate"], columns) if "candidate" in given else None
    candidate = () if chosen else _candidate(named_by, found, rows, {query, response})
    # A column without any passage is the last choice: tools write all their columns.
    found["context"].sort(key=lambda name: not any(map(cell_value, filled_cells(rows, name))))
    used = {query, more, response, *candidate, *chosen.values()}
    rest = {
        role: next((each for each in found[role] if each not in used), None)
        for role in ("reference", "category", "checklist", "context", "system")
    }
    label, not_labels = _label(given, found["label"], rows, what, bool(chosen))
    rest["labeler"] = next((each for each in found["labeler"] if label and each not in used), None)
    identity = next((each for each in found["id"] if each not in used), None)
    row_ids = why = None
    if identity and candidate and "id" not in given:
        asked = map(partial(_joined, parts=(query, more or query)), every() if every else rows)
        why = why_not_ids(asked, identity, query, candidate)
    if why:
        identity, row_ids = None, identity
    used |= {*rest.values(), label, identity, row_ids}
    return TableColumns(
        query=query,
        query_input=more,
        response=response,
        candidate=candidate,
        id=identity,
        label=label,
        wide=chosen,
        unread=tuple(each for each in columns if each not in used),
        seen=frozenset(columns),
        why_not_ids=why,
        not_labels=not_labels,
        **rest,
    )


def _joined(row: Row, parts: tuple[str, str]) -> Row:
    """Return a row whose query is both texts."""
    first, second = parts
    if first == second:
        return row
    return Row({**row.values, first: [row.values.get(each) for each in parts]}, row.where)


def _query(
    found: Mapping[str, list[str]], rows: Sequence[Row], columns: Sequence[str], what: str
) -> tuple[str, str | None]:
    """Return the column of the query, and the one whose text follows it if there is one."""
    likely = found["query"]
    if not likely:
        nearest = _nearest_part("query", columns)
        if nearest or found["response"] or len(_wide_by_name(rows, columns, set())) > 1:
            missing, option = "", Hint.of(f"{nearest}Name it: ", naming(query="COLUMN"))
        else:
            missing = ", and none like a response"
            option = Hint.of("Name both: ", naming(query="COLUMN", response="COLUMN"))
        raise BenchmarkError(
            f"{what}: no column looks like the query (the prompt or question){missing}.",
            hint=Hint.of(option, f". Columns: {join_words(columns, most=30)}."),
        )
    distinct = {each: len(distinct_texts(rows, each)) for each in likely}
    most = max(distinct.values())
    # A column with few values, such as a prompt template, is not the text that varies by query.
    varied = [each for each in likely if distinct[each] * 2 > most]
    named = {snake(each): each for each in likely}
    parts = [named[each] for each in ("instruction", "input") if each in named]
    if len(parts) == 2 and {*varied} <= {*parts}:
        filled = sum(bool(str(row.values.get(parts[1]) or "").strip()) for row in rows)
        if varied[-1:] == parts[:1] and 0 < filled < len(rows):
            return parts[0], parts[1]
        # A repeated instruction says what to do with the input.
        if varied == parts[1:]:
            raise _tworeadings(what, "query", parts[::-1], rows)
    same = [cell_texts(rows, each) for each in varied]
    if len(varied) == 1 or all(texts == same[0] for texts in same):
        return varied[0], None
    raise _tworeadings(what, "query", varied[:2], rows)


def _response(found: Mapping[str, list[str]], rows: Sequence[Row], query: str) -> str | None:
    likely = [each for each in found["response"] if each != query]
    if len(likely) > 1:
        first, second = likely[:2]
        raise BenchmarkError(
            f"Two columns could hold the response: {first!r} and {second!r}.",
            hint=readings(
                (naming(response=first, reference=second), f"{second} is the expected answer"),
                (naming(response=second, reference=first), f"{first} is"),
                (naming_wide([first, second]), "each is a candidate"),
            ),
        )
    return likely[0] if likely else None


def _candidate(
    given: Sequence[str] | None,
    found: Mapping[str, list[str]],
    rows: Sequence[Row],
    used: set[str | None],
) -> tuple[str, ...]:
    if given is not None:
        return tuple(filter(None, given))
    likely = [each for each in found["candidate"] if each not in used]
    varied = [each for each in likely if len(distinct_texts(rows, each)) > 1]
    if len(varied) < 2:
        return tuple((varied or likely)[:1])
    if len({tuple(text_codes(rows, each)) for each in varied}) == 1:
        # They name the same groups, such as model and model_id.
        return (varied[0],)
    first, second = varied[:2]
    raise BenchmarkError(
        f"Two columns could name the candidate: {first!r} and {second!r}.",
        hint=readings(
            (naming(candidate=first), ""),
            (naming(candidate=second), ""),
            (naming(candidate=f"{first}+{second}"), "every combination is a candidate"),
        ),
    )


def _long_or_wide(what: str, response: str, wide: Sequence[str]) -> BenchmarkError:
    return BenchmarkError(
        f"{what}: column {response!r} could hold all responses, or "
        f"{join_words(map(repr, wide), most=8)} those of one candidate each.",
        hint=readings(
            (naming(response=response), "the others are not read"),
            (
                both(naming_wide(wide), naming(reference=response)),
                f"{response} is the expected answer",
            ),
        ),
    )


def _which_are_responses(what: str, columns: Sequence[str], rows: Sequence[Row]) -> BenchmarkError:
    one = [
        (naming(response=each), f"only {each!r} holds responses: {_example(rows, each)}")
        for each in columns[:3]
    ]
    return BenchmarkError(
        f"{what}: no column has the name of a response, and several hold text: "
        f"{join_words(map(repr, columns), most=8)}.",
        hint=readings(*one, (naming_wide(columns), "each column is a candidate")),
    )


def _figures_or_responses(
    what: str, columns: Sequence[str], unclear: Sequence[str], texts: Sequence[str]
) -> BenchmarkError:
    every = [each for each in columns if each in (*unclear, *texts)]
    named = join_words(map(repr, unclear), most=8)
    return BenchmarkError(
        f"{what}: {named} could be responses, or figures about them.",
        hint=readings(
            (naming_wide(every), "they are responses"), (naming_wide(texts), "they are not read")
        ),
    )


def _tworeadings(
    what: str, role: str, columns: Sequence[str], rows: Sequence[Row]
) -> BenchmarkError:
    shown = [(naming(**{role: each}), _example(rows, each)) for each in columns]
    if [snake(each) for each in columns] == ["input", "instruction"]:
        shown.append((naming(query=f"{columns[1]}+{columns[0]}"), "both texts, in this order"))
    return BenchmarkError(
        f"{what}: two columns could hold the {role}: {columns[0]!r} and {columns[1]!r}.",
        hint=readings(*shown),
    )


def _example(rows: Sequence[Row], column: str) -> str:
    value = next((row.values[column] for row in rows if row.values.get(column)), "")
    return shown_value(value)[:60]


def _no_response(what: str, columns: Sequence[str], rows: Sequence[Row]) -> BenchmarkError:
    formulas = join_words((repr(each) for each in columns if is_uncomputed(rows, each)), most=8)
    stored = f"Formulas in {formulas} have no stored value. {OPEN_AND_SAVE} " if formulas else ""
    return BenchmarkError(
        f"{what}: no column looks like a response, and there are not two text columns that could "
        "be candidates.",
        hint=Hint.of(
            f"{stored}{_nearest_part('response', columns)}Name it: ",
            naming(response="COLUMN"),
            ", or ",
            naming_wide(["A", "B"]),
            f" for a column per candidate. Columns: {join_words(columns, most=30)}.",
        ),
    )


def _nearest_part(role: str, columns: Sequence[str]) -> str:
    by_name = {snake(each): each for each in columns}
    for name in COLUMN_NAMES[role]:
        meant = near_name(name, list(by_name))
        if meant and abs(len(meant) - len(name)) < 3 and meant[:1] == name[:1]:
            return f"Is {by_name[meant]!r} the {role}? "
    return ""


def _wide_by_name(rows: Sequence[Row], columns: Sequence[str], taken: set[str]) -> dict[str, str]:
    """Return the columns that are named like output_gpt4 and hold text, by candidate.

    If two names differ only in marks, as output_c++ and output_c#, the columns name the candidates.
    """
    others = [each for each in columns if each not in taken and not is_numeric(rows, each)]
    matches = {each: WIDE.match(snake(each)) for each in others}
    named = {
        each: found["a"] or found["b"]
        for each, found in matches.items()
        if found and snake(each) not in (*COLUMN_NAMES["response"], *COLUMN_NAMES["reference"])
    }
    texts = {each: name for each, name in named.items() if not is_flag(rows, each)}
    # Only where every candidate answers true or false are such columns responses.
    named = texts or named
    counts = Counter(named.values())
    return {name if counts[name] == 1 else each: each for each, name in named.items()}


def _label(
    given: Mapping[str, str], likely: Sequence[str], rows: Sequence[Row], what: str, wide: bool
) -> tuple[str | None, RefusedColumn | None]:
    """Return the first column whose cells are mostly numbers, or one that was refused."""
    named = given.get("label")
    if wide:
        if named:
            raise BenchmarkError(
                f"{what}: column {named!r} cannot be the label, because a row holds the responses "
                "of several candidates.",
                hint="Drop it, or write one row per response.",
            )
        return None, None
    refused = None
    for column in likely:
        filled = filled_cells(rows, column)
        words = [value for value in filled if not is_number(value)]
        formulas = not filled and is_uncomputed(rows, column)
        late = bool(named) and (formulas or not any(column in row.values for row in rows))
        if len(words) * 2 < len(filled) or late:
            return column, None
        if named:
            found = f"holds {shown_value(words[0])}" if words else "is empty"
            raise BenchmarkError(
                f"{what}: column {column!r} cannot be the label: it {found}, not numbers.",
                hint=f"Write {PLAIN_NUMBER} per response, or 1 for pass and 0 for fail.",
            )
        if words and refused is None:
            first = next(row for row in rows if row.values.get(column) is words[0])
            refused = RefusedColumn(
                column,
                f"column {column!r} is not read as labels: {first.where} holds "
                f"{shown_value(words[0])}, not {PLAIN_NUMBER}",
            )
    return None, refused


def _holds_conversation(rows: Sequence[Row], column: str) -> bool:
    """Return whether the first cell holds messages that end with the assistant's."""
    messages = cell_value(rows[0].values.get(column)) if rows else None
    if not is_messages(messages):
        return False
    last = messages[-1]  # type: ignore[index]
    return (last.get("role") or last.get("from")) in ("assistant", "gpt", "ai", "model")

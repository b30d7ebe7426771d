"""Validation, error messages and defaults of the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import ValidationError

from rocketeval.checklists.rubric import RubricOptions
from rocketeval.checklists.simple import FileOptions, FixedOptions
from rocketeval.config import (
    DistributedConfig,
    EngineConfig,
    NoOptions,
    RunConfig,
    Section,
    dump_config,
    load_config,
    parse_config,
    parse_options,
)
from rocketeval.errors import ConfigError
from rocketeval.grading.methods import CriterionOptions

SMALLEST: dict[str, Any] = {"benchmark": {"path": "data"}, "judge": {"model": "small"}}
INSTANCE = {"author": {"kind": "instance", "engine": {"model": "big"}}}


def with_setting(path: str, value: Any) -> dict[str, Any]:
    """Return the smallest config (with an author) plus one setting at a dotted path."""
    config: dict[str, Any] = yaml.safe_load(yaml.safe_dump({**SMALLEST, **INSTANCE}))
    section = config
    *parents, last = path.split(".")
    for parent in parents:
        section = section.setdefault(parent, {})
    section[last] = value
    return config


def refusal(raw: Any) -> str:
    """Return the message when `raw` is refused."""
    with pytest.raises(ConfigError) as refused:
        parse_config(raw)
    assert "pydantic" not in str(refused.value)
    assert "Config" not in str(refused.value).replace("The config", "")
    return str(refused.value)


def write(folder: Path, text: str) -> Path:
    """Write a config file with the given text."""
    path = folder / "rocketeval.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("benchmrk", "benchmark"),
        ("benchmark.limits", "limit"),
        ("judge.base_ulr", "base_url"),
        ("judge.price.promt", "prompt"),
        ("author.max_item", "max_items"),
        ("author.engine.concurency", "concurrency"),
        ("author.price.cache", "cached"),
        ("scorer.scales", "scale"),
        ("ranking.bootstraps", "bootstrap"),
    ],
)
def test_unknown_setting_is_refused_with_path_and_nearest_name(path: str, nearest: str) -> None:
    """A typo at any level is named by its path, with the nearest valid setting."""
    message = refusal(with_setting(path, 1))
    assert f"{path}: there is no such setting." in message
    assert f"Did you mean {nearest!r}?" in message


def test_name_without_a_near_match_gets_the_list() -> None:
    """If no name is near, the valid settings of the section are listed."""
    assert "Valid: anchor, anchor_rating, bootstrap, rank_intervals, seed, tie_margin." in refusal(
        with_setting("ranking.zzz", 1)
    )


def test_all_mistakes_are_reported_together() -> None:
    """Two mistakes in two sections give two lines."""
    raw = with_setting("judge.concurrency", 0)
    raw["ranking"] = {"tie_margin": -1}
    message = refusal(raw)
    assert "judge.concurrency:" in message
    assert "ranking.tie_margin:" in message


def test_defaults() -> None:
    """Only the benchmark's path and the judge's model are required."""
    config = parse_config(SMALLEST)
    assert config.name == "run"
    assert config.benchmark.kind == "jsonl"
    assert (config.benchmark.candidates, config.benchmark.limit) == (None, None)
    assert config.author.kind == "imported"
    assert (config.scorer.kind, config.scorer.scale, config.scorer.missing) == (
        "mean",
        (1.0, 10.0),
        "skip",
    )
    assert config.judge.api_key_env == "OPENAI_API_KEY"
    assert config.judge.top_logprobs == 20
    assert config.run_path == Path("runs/run")


@pytest.mark.parametrize(
    "section",
    [one for one in Section.__subclasses__() if one.__module__ == RunConfig.__module__],
)
def test_every_path_setting_is_resolved(section: type[Section]) -> None:
    """Every path setting of the config uses ConfigPath."""
    for name, field in section.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        assert Path not in kinds or field.metadata, f"{section.__name__}.{name}: use ConfigPath"


def test_missing_file_points_to_init(tmp_path: Path) -> None:
    """The error for a missing config names `rocketeval init`."""
    with pytest.raises(ConfigError, match="No such file") as refused:
        load_config(tmp_path / "absent.yaml")
    assert "rocketeval init" in refused.value.hint


def test_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    """A folder gives a ConfigError, not an IsADirectoryError."""
    with pytest.raises(ConfigError, match="is a folder, not a config file"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("benchmark: {path: data\njudge: {model: m}\n", "line 2"),
        ("judge:\n\tmodel: m\n", "line 2"),
        ("name: a\nname: b\n", "'name' is set twice, in line 2"),
        ("judge:\n  model: a\n  base_url: x\n  model: b\n", "'model' is set twice, in line 4"),
        ("started: 2024-13-45\n", "month"),
        ("name: " + "[" * 100_000, "nested too deeply"),
        ("name: !!python/object:os.system {}\n", "could not determine a constructor"),
    ],
)
def test_bad_yaml_names_the_file_and_the_line(tmp_path: Path, text: str, message: str) -> None:
    """Invalid, ambiguous or unsafe YAML is a ConfigError with the line."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(path) in refused.value.message
    assert message in refused.value.message


def test_keys_merged_in_yaml_are_not_set_twice(tmp_path: Path) -> None:
    """An anchor merged with `<<` and overridden is not a duplicate key."""
    path = write(
        tmp_path,
        "benchmark: {path: data}\n"
        "judge: &small {model: a, timeout: 5}\n"
        "author: {kind: instance, engine: {<<: *small, model: b}}\n",
    )
    engine = load_config(path).author.engine
    assert engine is not None
    assert (engine.model, engine.timeout) == ("b", 5)


def test_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    """Files of Windows editors can be read."""
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbfbenchmark: {path: data}\r\njudge: {model: m}\r\n")
    assert load_config(path).judge.model == "m"


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """Latin-1 gives a ConfigError, not a UnicodeDecodeError."""
    path = tmp_path / "run.yaml"
    path.write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"not text in UTF-8"):
        load_config(path)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n", "42\n"])
def test_file_without_a_mapping_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file, a list, a word or a number is not a config."""
    with pytest.raises(ConfigError, match=r"is empty|contains no settings"):
        load_config(write(tmp_path, text))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("judge", None, "judge: this must be a mapping of settings."),
        ("judge", "gpt-4", "judge: this must be a mapping of settings."),
        ("judge.model", None, "judge.model: this must be text"),
        ("judge.extra_body", [1], "judge.extra_body: this must be a mapping of settings."),
        (
            "judge.concurrency",
            "many",
            "judge.concurrency: this must be a whole number, not 'many'.",
        ),
        ("judge.min_mass", 1.5, "judge.min_mass: this must be at most 1, not 1.5."),
        ("judge.timeout", float("nan"), "judge.timeout: this must be a finite number"),
        ("benchmark.limit", 0, "benchmark.limit: this must be greater than 0, not 0."),
        ("benchmark.candidates", "gpt-4", "benchmark.candidates: this must be a list."),
        ("benchmark.candidates", [], "benchmark.candidates: at least 1 item is needed, not 0."),
        ("benchmark.candidates", ["a", 4], "benchmark.candidates.1: this must be text"),
        ("scorer.missing", "ignore", "scorer.missing: this must be 'skip' or 'drop'"),
        ("scorer.scale", [10, 1], "scorer.scale: the scale must go from a low to a high number"),
        ("scorer.scale", [5, 5], "scorer.scale: the scale must go from a low to a high number"),
        ("scorer.scale", [1, float("inf")], "scorer.scale: the scale must go"),
        ("author.min_items", 13, "author: min_items is above max_items"),
    ],
)
def test_wrong_values_are_named_by_path(path: str, value: Any, message: str) -> None:
    """The message names the setting and the valid type or range."""
    assert message in refusal(with_setting(path, value))


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        ({"grades": list("abcd")}, "criterion.grades: this needs 5 items, not 4."),
        ({"grades": ["a"]}, "criterion.grades: this needs 5 items, not 1."),
        ({"grades": list("abcdef")}, "criterion.grades: at most 5 items are allowed, not 6."),
        ({"grades": [1, *"bcde"]}, "criterion.grades.0: this must be text."),
        ({"grades": list("abcde"), "extra": 1}, "criterion.extra: there is no such setting. "),
        (3, "criterion: this must be text or a mapping of settings."),
    ],
)
def test_mistakes_of_settings_with_two_types(criterion: Any, message: str) -> None:
    """Only the type that was meant is explained, without names of the validator."""
    given = criterion
    if isinstance(criterion, dict):
        given = {"name": "wit", "definition": "W.", **criterion}
    with pytest.raises(ConfigError) as found:
        parse_options({"criterion": given}, CriterionOptions, "x")
    (line,) = found.value.message.splitlines()[1:]
    assert line.strip().startswith(message)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"actors": "many"}, DistributedConfig, "actors: this must be a whole number or a list."),
        ({"actors": -1}, DistributedConfig, "actors: this must be at least 1, not -1."),
        ({"items": []}, FixedOptions, "items: at least 1 item is needed, not 0."),
        ({"file": [1]}, FileOptions, "file: this must be a path, as text."),
        ({"functions": {1: "a:b"}}, RubricOptions, "functions.1: its name must be text."),
        ({"shows": ["all"]}, RubricOptions, "shows.0: this must be 'system', 'context' or"),
        ({"check_megabytes": "9" * 5000}, RubricOptions, "check_megabytes: this must be a whole"),
    ],
)
def test_mistakes_are_in_our_words(options: Any, kind: type[Section], message: str) -> None:
    """No wording or type name of the validator reaches the user."""
    with pytest.raises(ConfigError) as found:
        parse_options(options, kind, "x")
    lines = [line.strip() for line in found.value.message.splitlines()[1:]]
    assert lines[0].startswith(message)
    assert len(lines) == 1


def test_required_settings_are_named() -> None:
    """Every missing required setting is listed."""
    message = refusal({"benchmark": {}, "author": {"engine": {}}})
    assert "benchmark.path: this setting is required." in message
    assert "judge: this setting is required." in message
    assert "author.engine.model: this setting is required." in message


def test_numeric_setting_name_is_refused() -> None:
    """YAML reads the key of `1: x` as a number, which is not a setting."""
    assert "1: the name of a setting must be text." in refusal({**SMALLEST, 1: "x"})


ESCAPES = [
    "",
    ".",
    "..",
    "a/b",
    "../a",
    "/abs",
    "a\\b",
    "C:\\x",
    "C:x",
    " a",
    "a\n",
    ".cache",
    "\0",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_names_that_leave_the_output_folder_are_refused(name: str) -> None:
    """A run's name must be one visible folder on every system."""
    message = refusal({**SMALLEST, "name": name})
    assert f"name: the run's name {name!r} is not a plain folder name." in message


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_replaced_after_validation_cannot_escape_either(name: str) -> None:
    """`--name` copies the config without validation, so the path is checked too."""
    config = parse_config(SMALLEST).model_copy(update={"name": name})
    with pytest.raises(ConfigError, match="plain folder name"):
        _ = config.run_path


@pytest.mark.parametrize("name", ["run", "my run", "qwen2.5-1.5b", "v1..v2", "12:30", "Prüfung"])
def test_ordinary_names_are_accepted(name: str) -> None:
    """Spaces, inner dots, colons and any script are accepted."""
    assert parse_config({**SMALLEST, "name": name}).run_path == Path("runs") / name


def full_config() -> RunConfig:
    """Return a config with many settings changed."""
    return parse_config(
        {
            "name": "été 1",
            "benchmark": {
                "kind": "mt_bench",
                "path": "data/日本",
                "options": {"turns": [1], "votes": "v.jsonl"},
                "candidates": ["a", "no", "1.0"],
                "limit": 5,
            },
            "judge": {
                "model": "m",
                "base_url": "http://127.0.0.1:8000/v1",
                "api_key_env": "MY_KEY",
                "extra_body": {"cache_prompt": True, "n": [1, 2.5, None]},
                "template": "grade.txt",
                "price": {"prompt": 0.1, "cached": 0.01, "completion": 0.4},
            },
            "author": {"kind": "instance", "engine": {"model": "big", "timeout": 1e3}},
            "scorer": {"scale": [0, 1], "missing": "drop"},
            "ranking": {"seed": 7},
            "cache": None,
        }
    )


def test_dumped_config_reads_back_equal() -> None:
    """run.yaml is enough to repeat a run."""
    config = full_config()
    assert parse_config(yaml.safe_load(dump_config(config))) == config


def test_no_secret_is_in_the_dump() -> None:
    """Every text under a secret name is hidden, for every engine; other settings stay."""
    engine = {
        "model": "m",
        "extra_body": {
            "api_keys": ["sk-1"],
            "credentials": {"value": "sk-2", "n": 1},
            "headers": [{"accessToken": "sk-3", "max_tokens": "9"}],
        },
        "options": {"auth": {"jwt": ["sk-4"]}, "threads": "two"},
    }
    config = parse_config(
        {
            "benchmark": {"path": "x", "options": {"key": "id"}},
            "judge": engine,
            "author": {"kind": "instance", "engine": engine},
        }
    )
    dumped = dump_config(config)
    assert "sk-" not in dumped
    kept = parse_config(yaml.safe_load(dumped))
    assert kept.judge.extra_body["headers"] == [{"accessToken": "***", "max_tokens": "9"}]
    assert kept.judge.options["threads"] == "two"
    assert kept.benchmark.options == {"key": "id"}


def test_loaded_config_reads_back_equal_from_another_folder(tmp_path: Path) -> None:
    """Paths are absolute in the dump."""
    config = load_config(write(tmp_path, dump_config(full_config())))
    (tmp_path / "run").mkdir()
    assert load_config(write(tmp_path / "run", dump_config(config))) == config


def test_dump_has_no_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the name of the variable is written, never its value."""
    monkeypatch.setenv("MY_KEY", "sk-secret")
    dump = dump_config(full_config())
    assert "api_key_env: MY_KEY" in dump
    assert "sk-secret" not in dump


def test_api_key_instead_of_its_variable_is_refused() -> None:
    """A pasted key is refused, and the message does not repeat it."""
    message = refusal(with_setting("judge.api_key_env", "sk-secret"))
    assert "judge.api_key_env: this is not the name of an environment variable." in message
    assert "sk-secret" not in message


def test_python_errors_do_not_show_the_api_key() -> None:
    """The error of a section built in Python hides its input."""
    with pytest.raises(ValidationError) as refused:
        EngineConfig(model="m", api_key_env="sk-secret")
    assert "sk-secret" not in str(refused.value)


def test_config_is_frozen() -> None:
    """Settings cannot be assigned."""
    config = parse_config(SMALLEST)
    with pytest.raises(ValidationError, match="frozen"):
        config.name = "other"  # type: ignore[misc]


def test_options_of_an_implementation_are_checked_like_the_config() -> None:
    """A typo in `options` is named with its path and the nearest valid option."""

    class Options(Section):
        labeler: str | None = None

    assert parse_options({"labeler": "x"}, Options, "benchmark.options").labeler == "x"
    with pytest.raises(ConfigError) as refused:
        parse_options({"labeller": "x"}, Options, "benchmark.options")
    assert refused.value.message.startswith("benchmark.options has a mistake:")
    assert "Did you mean 'labeler'?" in refused.value.message


def test_implementation_without_options_refuses_all() -> None:
    """An unused option is an error."""
    with pytest.raises(ConfigError, match="there is no such setting"):
        parse_options({"anything": 1}, NoOptions, "scorer.options")


def test_password_in_the_url_is_refused() -> None:
    """A password in base_url is refused, and the message does not repeat it."""
    raw = {
        "benchmark": {"path": "x"},
        "judge": {"model": "m", "base_url": "http://me:hunter2@host/v1"},
    }
    with pytest.raises(ConfigError, match="user name or password") as caught:
        parse_config(raw)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["Yes"], "at least two"),
        (["Good", "good"], "case"),
        (["5", " "], "blank"),
        (["5", " 4"], "space around it"),
        ([5, 4], "must be text"),
    ],
)
def test_ambiguous_labels_are_refused(labels: Any, message: str) -> None:
    """A judge needs at least two words that differ in more than case."""
    assert message in refusal(with_setting("judge.labels", labels))


def test_default_labels_are_yes_and_no() -> None:
    """They are dumped as text, not as true and false."""
    config = parse_config(SMALLEST)
    assert config.judge.labels == ("Yes", "No")
    assert parse_config(yaml.safe_load(dump_config(config))) == config


def test_deeply_nested_file_is_refused(tmp_path: Path) -> None:
    """Deep nesting gives a ConfigError, not a RecursionError."""
    path = tmp_path / "deep.yaml"
    path.write_text("name: " + "[" * 1000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(path)


def test_tie_margin_is_a_share_of_the_scale() -> None:
    """The same answers tie on every scale; a margin that is given stays what it was."""

    def margin(**sections: object) -> float:
        required = {"benchmark": {"path": "b"}, "judge": {"model": "m"}}
        return parse_config({**required, **sections}).ranking.tie_margin

    assert margin() == 0.1
    assert margin(scorer={"scale": [1, 5]}) == pytest.approx(0.4 / 9)
    assert margin(scorer={"scale": [0, 1]}) == pytest.approx(0.1 / 9)
    assert margin(scorer={"scale": [0, 1]}, ranking={"tie_margin": 0.1}) == 0.1
    frozen = yaml.safe_load(
        dump_config(parse_config({"benchmark": {"path": "b"}, "judge": {"model": "m"}}))
    )
    assert parse_config(frozen).ranking.tie_margin == 0.1


@pytest.mark.parametrize("setting", ["cache", "output", "benchmark.path", "judge.template"])
def test_path_with_a_null_character_is_refused(setting: str) -> None:
    """The operating system has no such file, so the message names the setting."""
    assert f"{setting}: a path cannot contain" in refusal(with_setting(setting, "a\0b"))

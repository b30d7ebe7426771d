"""`run DATA`, `import` and `init --data`: from a user's file to a ranking."""

from __future__ import annotations

import io
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.cli.data_config import is_config
from rocketeval.config import BenchmarkConfig, load_config
from support.data_files import MADE, PEERS, wide_csv
from support.in_process import cli

CSV = "question,model,output\n" + "".join(
    f'"What is {n}?",{model},"{model} says {n}"\n' for model in ("a", "b", "c") for n in range(4)
)
SCRIPTED = ("--judge", "m")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a CSV file of three candidates."""
    (tmp_path / "answers.csv").write_text(CSV)
    return tmp_path


def scripted(config: Path) -> None:
    """Let the scripted engine judge a written config."""
    text = config.read_text().replace("model: m\n", "model: m\n  engine: scripted\n")
    config.write_text(text)


def test_two_commands_to_a_ranking(folder: Path) -> None:
    """The first command names the format and writes a config; the run judges and ranks."""
    made = cli(
        folder, "init", ".", "--data", "answers.csv", "--model", "m", "--checklist", "general"
    )
    assert "csv table, 12 rows, 3 candidates, 4 queries" in made.stdout
    scripted(folder / "rocketeval.yaml")
    done = cli(folder, "run")
    assert "Ranking over 4 queries" in done.stdout
    assert (folder / "runs" / "answers" / "report.html").exists()


def test_run_writes_a_config_and_uses_it_again(folder: Path) -> None:
    """`run DATA` writes a config that the same command, and others, use later."""
    failed = cli(
        folder, "run", "answers.csv", *SCRIPTED, "--base-url", "http://127.0.0.1:9/v1",
        "--checklist", "general", code=4,
    )  # fmt: skip
    assert "column 'question'" in failed.stderr
    config = folder / "answers.rocketeval.yaml"
    written = load_config(config)
    assert (written.benchmark.kind, written.judge.model) == ("table", "m")
    assert written.benchmark.options["columns"] == {
        "query": "question",
        "response": "output",
        "candidate": "model",
    }
    scripted(config)
    done = cli(folder, "run", "answers.csv")
    assert "Using answers.rocketeval.yaml" in done.stderr
    assert "Ranking over 4 queries" in done.stdout
    # The commands it suggests name the config, not the data.
    assert "answers.rocketeval.yaml" in done.stdout.partition("Next")[2]
    again = cli(folder, "run", "runs/answers", "--only", "rank")
    assert "Ranking over 4 queries" in again.stdout
    typed = ["--column", "query=question", "--checklist", "general"]
    assert "Ranking over 4 queries" in cli(folder, "run", "answers.csv", *typed).stdout
    told = cli(folder, "run", "answers.csv", "--skip-bad", code=2)
    assert "another `benchmark` than" in told.stderr
    assert "Leave them out (rocketeval run answers.csv)" in told.stderr
    told = cli(folder, "run", "answers.csv", "--author", "some-llm", code=2)
    assert "another `author` than" in told.stderr


def test_a_corrected_judge_stays_in_the_config(folder: Path) -> None:
    """A typo is replaced until something was judged; after that, another judge is only named."""
    lists = ("--checklist", "general")
    dead = ("--base-url", "http://127.0.0.1:9/v1")
    cli(folder, "run", "answers.csv", "--judge", "typo", *dead, *lists, code=4)
    config = folder / "answers.rocketeval.yaml"
    assert load_config(config).judge.model == "typo"
    told = cli(folder, "run", "answers.csv", "--judge", "m", *dead, *lists, code=4)
    assert "Its judge is now m at http://127.0.0.1:9/v1." in told.stderr
    assert load_config(config).judge.model == "m"
    scripted(config)
    cli(folder, "run", "answers.csv")
    before = config.read_text()
    told = cli(folder, "run", "answers.csv", "--judge", "other", "--name", "again")
    assert "this command uses another one" in told.stderr
    assert config.read_text() == before


def test_a_moved_run_is_its_own_run(folder: Path) -> None:
    """Verbs given a copied run directory read and write the copy, not the original."""
    cli(folder, "init", ".", "--data", "answers.csv", "--model", "m", "--checklist", "general")
    scripted(folder / "rocketeval.yaml")
    cli(folder, "run")
    run, copy = folder / "runs" / "answers", folder / "elsewhere" / "mine"
    copy.parent.mkdir()
    run.rename(copy)
    (copy / "report.html").unlink()
    cli(folder, "run", "elsewhere/mine")
    assert (copy / "report.html").exists()
    assert "queries with both scores" in cli(folder, "compare", "a", "b", "elsewhere/mine").stdout
    assert "neighbors in the ranking" in cli(folder, "explain", "elsewhere/mine/run.yaml").stdout
    assert not run.exists()


def test_data_without_a_judge_or_checklists(folder: Path) -> None:
    """Without a judge or checklists, the choices and the cost of an author are named."""
    neither = cli(folder, "run", "answers.csv", code=2)
    assert "--judge MODEL" in neither.stderr
    assert "--checklist general" in neither.stderr
    no_lists = cli(folder, "run", "answers.csv", *SCRIPTED, code=2)
    assert "4 requests" in no_lists.stderr
    assert "--checklist general" in no_lists.stderr
    assert not (folder / "answers.rocketeval.yaml").exists()
    both = cli(
        folder, "run", "answers.csv", *SCRIPTED, "--author", "x", "--checklist", "general", code=2
    )
    assert "exclude each other" in both.stderr


def test_author_and_checklist_file(folder: Path) -> None:
    """An author, or a checklist file, becomes the config's author."""
    cli(folder, "init", "one", "--data", "answers.csv", "--model", "m", "--author", "gpt-4o",
        "--author-url", "http://127.0.0.1:9/v1")  # fmt: skip
    author = load_config(folder / "one" / "rocketeval.yaml").author
    assert (author.kind, author.engine and author.engine.model) == ("instance", "gpt-4o")
    (folder / "mine.yaml").write_text("for_all: {items: [Is it right?]}\n")
    cli(folder, "init", "two", "--data", "answers.csv", "--model", "m", "--checklist", "mine.yaml")
    assert load_config(folder / "two" / "rocketeval.yaml").author.kind == "file"
    cli(
        folder,
        "init",
        "x",
        "--data",
        "answers.csv",
        "--model",
        "m",
        "--checklist",
        "no.yaml",
        code=2,
    )


def test_labels_between_zero_and_one_set_the_scale(tmp_path: Path) -> None:
    """Scores of Inspect are labels from 0 to 1, and the written config says so."""
    cli(
        tmp_path,
        "init",
        ".",
        "--data",
        str(PEERS / "inspect"),
        "--model",
        "m",
        "--checklist",
        "general",
    )
    config = load_config(tmp_path / "rocketeval.yaml")
    assert config.scorer.scale == (0.0, 1.0)
    scripted(tmp_path / "rocketeval.yaml")
    done = cli(tmp_path, "run", "--json")
    assert json.loads(done.stdout)["audit"]["labels"] is not None


def test_promptfoo_runs_with_its_rubrics(tmp_path: Path) -> None:
    """Rubric assertions need no author."""
    results = PEERS / "promptfoo" / "results.yaml"
    cli(tmp_path, "init", ".", "--data", str(results), "--model", "m")
    config = yaml.safe_load((tmp_path / "rocketeval.yaml").read_text())
    assert config["author"] == {"kind": "imported"}
    scripted(tmp_path / "rocketeval.yaml")
    assert "clever / polite" in cli(tmp_path, "run").stdout


@pytest.mark.parametrize("name", [name for name in MADE if name != "wide_csv"])
def test_import_round_trip(name: str, tmp_path: Path) -> None:
    """A converted folder holds the same records as the file."""
    source = MADE[name][1](tmp_path / "source")
    shown = json.loads(cli(tmp_path, "import", str(source), "--out", "made", "--json").stdout)
    assert shown["rows"] == shown["used"] + sum(shown["skipped"].values())
    ours = open_benchmark(BenchmarkConfig(kind=shown["kind"], path=source))
    made = open_benchmark(BenchmarkConfig(kind="jsonl", path=tmp_path / "made"))
    for part in ("queries", "responses", "checklists", "labels", "votes"):
        assert list(getattr(made, part)()) == list(getattr(ours, part)()), part
    again = cli(tmp_path, "import", str(source), "--out", "made", code=2)
    assert "already has files" in again.stderr


def test_import_shows_skips_and_next(tmp_path: Path) -> None:
    """Skipped rows are named with their reason and place."""
    shown = cli(tmp_path, "import", str(PEERS / "otel_genai.jsonl"))
    assert "skipped 1 row: not an LLM call (otel_genai.jsonl:1 span 7)" in shown.stdout
    assert "Next: rocketeval run" in shown.stdout
    assert "--judge MODEL" in shown.stdout.partition("Next")[2]


def test_columns_can_be_named(tmp_path: Path) -> None:
    """--column and --candidates override what is recognized; a wrong name gets the nearest."""
    path = str(wide_csv(tmp_path))
    shown = cli(tmp_path, "import", path, "--candidates", "v1,v2", "--column", "category=")
    assert "category" not in shown.stdout
    wrong = cli(tmp_path, "import", path, "--column", "query=questionn", code=2)
    assert "Did you mean 'question'?" in wrong.stderr
    part = cli(tmp_path, "import", path, "--column", "qurey=question", code=2)
    assert "Did you mean 'query'?" in part.stderr
    assert "PART=NAME" in cli(tmp_path, "import", path, "--column", "query", code=2).stderr


def test_two_readings_are_refused(tmp_path: Path) -> None:
    """Where two columns fit, both readings are printed as options."""
    table = tmp_path / "qa.csv"
    table.write_text("question,answer,output\nOne?,1,It is 1\nTwo?,2,It is 3\n")
    shown = cli(tmp_path, "import", "qa.csv", code=2)
    assert "--column response=output --column reference=answer" in shown.stderr
    assert "--candidates output,answer" in shown.stderr
    table.write_text("question,prompt,output\nOne?,Say: One?,1\nTwo?,Say: Two?,2\n")
    assert "--column query=prompt" in cli(tmp_path, "import", "qa.csv", code=2).stderr
    table.write_text("question,model,version,output\nO?,a,1,x\nO?,b,1,y\nO?,a,2,z\nO?,b,2,w\n")
    assert "candidate=model+version" in cli(tmp_path, "import", "qa.csv", code=2).stderr
    joined = cli(tmp_path, "import", "qa.csv", "--column", "candidate=model+version")
    assert "4 candidates" in joined.stdout


def test_options_about_data_need_data(folder: Path) -> None:
    """A config refuses options about data; `init` needs --data for them."""
    cli(folder, "init", "demo", "--model", "m")
    told = cli(folder, "run", "demo/rocketeval.yaml", "--checklist", "general", code=2)
    assert "is a config" in told.stderr
    assert "--data" in cli(folder, "init", "x", "--author", "y", code=2).stderr
    both = cli(folder, "init", "x", "--recorded", "--data", "answers.csv", code=2)
    assert "--data" in both.stderr


def test_bad_rows_are_listed_and_can_be_skipped(folder: Path) -> None:
    """The first ten rows of each mistake are listed, the rest counted; --skip-bad goes on."""
    rows = [{"question": f"Q{n}?", "model": "a", "output": "x"} for n in range(30)]
    lines = [json.dumps(row) for row in rows]
    for place in range(5, 20):
        lines[place] = lines[place][:-3]
    lines[25] = json.dumps({"question": "", "model": "a", "output": "x"})
    (folder / "bad.jsonl").write_text("\n".join(lines))
    told = cli(folder, "import", "bad.jsonl", code=2).stderr
    assert "16 of 30 rows cannot be used" in told
    assert "bad.jsonl:6:" in told
    assert "bad.jsonl:16:" not in told
    assert "and 5 more" in told
    assert "the query is empty (1 row)" in told
    shown = json.loads(cli(folder, "import", "bad.jsonl", "--skip-bad", "--json").stdout)
    assert (shown["rows"], shown["used"], sum(shown["skipped"].values())) == (30, 14, 16)


class Terminal(io.StringIO):
    """A terminal at which someone types."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def test_questions_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without flags, `init` asks for the data, the judge and the author, and writes a config."""
    monkeypatch.setattr(sys, "stdin", Terminal("answers.csv\nm\n\n"))
    told = cli(folder, "init", "asked")
    assert "4 requests" in told.stderr
    config = load_config(folder / "asked" / "rocketeval.yaml")
    assert (config.judge.model, config.author.kind) == ("m", "fixed")
    monkeypatch.setattr(sys, "stdin", Terminal("m\ngpt-4o\nhttp://127.0.0.1:9/v1\n"))
    cli(folder, "init", "second", "--data", "answers.csv")
    author = load_config(folder / "second" / "rocketeval.yaml").author
    assert author.engine is not None
    assert author.engine.base_url == "http://127.0.0.1:9/v1"
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    assert "benchmark" in cli(folder, "init", "example").stdout


def test_a_dataset_without_its_package(folder: Path) -> None:
    """A Hugging Face name without `datasets` installed says what to install."""
    if find_spec("datasets") is not None:
        pytest.skip("datasets is installed")
    assert "pip install datasets" in cli(folder, "import", "hf:some/name", code=2).stderr


def test_folders_of_known_layouts(folder: Path) -> None:
    """A folder with a config uses it; a benchmark folder with checklists needs no author."""
    cli(folder, "init", "demo", "--model", "m")
    scripted(folder / "demo" / "rocketeval.yaml")
    done = cli(folder, "run", "demo", "--limit", "2")
    assert "the config in this folder" in done.stderr
    cli(folder, "init", "own", "--data", "demo/benchmark", "--model", "m")
    config = load_config(folder / "own" / "rocketeval.yaml")
    assert (config.benchmark.kind, config.author.kind) == ("jsonl", "imported")


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    """`run DATA --dry-run` plans, and leaves no config behind."""
    told = cli(folder, "run", "answers.csv", *SCRIPTED, "--checklist", "general", "--dry-run")
    assert "4 queries" in told.stdout
    assert [path.name for path in folder.iterdir()] == ["answers.csv"]


def test_run_inside_a_data_folder(tmp_path: Path) -> None:
    """The config and the runs in a data folder are not read as data."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "answers.csv").write_text(CSV)
    cli(data, "run", ".", *SCRIPTED, "--base-url", "http://127.0.0.1:9/v1", "--checklist",
        "general", code=4)  # fmt: skip
    scripted(data / "data.rocketeval.yaml")
    assert "Ranking over 4 queries" in cli(data, "run", ".").stdout
    shown = json.loads(cli(data, "import", ".", "--json").stdout)
    assert (shown["rows"], shown["queries"]) == (12, 4)


def test_a_written_config_is_for_its_data_only(folder: Path) -> None:
    """Another dataset or file of the same name, or new options, are refused."""
    config = folder / "answers.rocketeval.yaml"
    config.write_text(
        "name: x\nbenchmark: {kind: table, path: ., options: {dataset: some/answers}}\n"
        "judge: {model: m}\n"
    )
    told = cli(folder, "run", "answers.csv", code=2).stderr
    assert "reads hf:some/answers:train, not" in told
    config.write_text("name: x\nbenchmark: {kind: table, path: answers.csv}\njudge: {model: m}\n")
    for typed in (["--skip-bad"], ["--author-url", "http://127.0.0.1:9/v1"]):
        assert "no effect" in cli(folder, "run", "answers.csv", *typed, code=2).stderr


def test_labels_of_one_value_give_a_scale(folder: Path) -> None:
    """A config for labels that are all 50 can be loaded."""
    (folder / "same.csv").write_text("question,model,output,score\n1?,a,x,50\n1?,b,y,50\n")
    cli(folder, "init", "s", "--data", "same.csv", "--model", "m", "--checklist", "general")
    assert load_config(folder / "s" / "rocketeval.yaml").scorer.scale == (0.0, 100.0)


def test_rows_in_yaml(tmp_path: Path) -> None:
    """A YAML list is data, not a config."""
    (tmp_path / "rows.yaml").write_text(
        "- {question: '1?', model: a, output: x}\n- {question: '1?', model: b, output: y}\n"
    )
    told = cli(tmp_path, "run", "rows.yaml", *SCRIPTED, "--checklist", "general", "--dry-run")
    assert "yaml table, 2 rows, 2 candidates" in told.stderr


def test_other_verbs_name_the_config(folder: Path) -> None:
    """`plan`, `doctor` and `compare` with a data file name its config, or how to write one."""
    assert "init --data answers.csv" in cli(folder, "plan", "answers.csv", code=2).stderr
    (folder / "answers.rocketeval.yaml").write_text("name: x\n")
    for verb in (["plan"], ["doctor"], ["compare", "a", "b"]):
        told = cli(folder, *verb, "answers.csv", code=2).stderr
        assert "answers.csv is data" in told
        assert "answers.rocketeval.yaml" in told


@pytest.mark.parametrize(
    "words",
    [
        *(["export"], ["explain"], ["verify"], ["repair"], ["anchors"], ["checklist"], ["lint"]),
        ["view"],
        *(["gate", "x"], ["ensemble", "x"], ["cascade", "x", "--share", "0.3", "--out", "out"]),
    ],
    ids=lambda words: words[0],
)
def test_verbs_about_runs_name_the_config(folder: Path, words: list[str]) -> None:
    """A data file where a run or checklists belong is refused with its config."""
    (folder / "answers.rocketeval.yaml").write_text(
        "name: x\nbenchmark: {kind: table, path: answers.csv}\njudge: {model: m}\n"
    )
    told = cli(folder, *words, "answers.csv", code=2).stderr
    assert "answers.csv is data, not a config.\nIts config is answers.rocketeval.yaml" in told


def test_formats_of_folders(folder: Path) -> None:
    """A format that reads a folder says so about a file."""
    told = cli(folder, "import", "answers.csv", "--format", "jsonl", code=2).stderr
    assert "jsonl reads a folder; answers.csv is a file." in told


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("benchmark: {path: .}\njudge: {model: m}\n", True),
        ("judge: {model: m}\n", True),
        ("- {question: a, output: b}\n", False),
        ("about: {benchmark: x}\nresults:\n  - {question: a}\n", False),
        ("? [a, b]\n: c\nrows: []\n", False),
        ("", True),
        ("a: b: c\n", True),
    ],
)
def test_yaml_is_a_config_or_data(tmp_path: Path, text: str, config: bool) -> None:
    """The first key that decides is enough; a mistake is explained as one of a config."""
    path = tmp_path / "given.yaml"
    path.write_text(text)
    assert is_config(path) is config


def test_yaml_data_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is a config is known from its first key, however many rows follow."""
    path = tmp_path / "rows.yaml"
    path.write_text("results:\n" + "  - {question: a, output: b}\n" * 2000 + "broken: [\n")
    monkeypatch.setattr("rocketeval.resources.load_yaml", None)
    events = 0
    parse = yaml.parse

    def counted(*args: Any) -> Any:
        nonlocal events
        for event in parse(*args):
            events += 1
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    assert not is_config(path)
    assert events < 20

"""Follow the Containerfile without a container engine, in a scratch folder.

    python studies/integrations/check_container.py [--python PYTHON] \\
        > studies/integrations/recorded/check_container.txt

Reads the instructions from the Containerfile itself. The scratch folder is the image's root: it
holds the files that COPY names and nothing else of the repository, and a new virtual environment
for what RUN installs. If started by root, the commands after USER run as `nobody`. Runs ENTRYPOINT
with CMD, then `serve` as the Containerfile's comment says, in front of a judge made of rules
(word_judge.py), and asks for its health, its description and a score. Last, checks that every
shared library that an installed package needs is in a package, in the base image, or installed by
apt. A failed step ends the script with exit code 1.

Not checked: the base image itself, apt, and creating the user.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError

ROOT = Path(__file__).parents[2]
NOBODY = "nobody"
START_SECONDS = 120
"""How long the server may take to start; importing for the first time compiles everything."""
BASE_LIBRARIES = re.compile(
    r"(ld-linux.*|lib(c|m|dl|pthread|rt|util|gcc_s|stdc\+\+|z|python3[.\d]*))\.so[.\d]*"
)
"""Libraries that python:*-slim has: those of glibc, of apt and of the interpreter."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Containerfile."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The words of its rest, from a JSON list or as a shell splits them."""
        if self.rest.startswith("["):
            found: list[str] = json.loads(self.rest)
            return found
        return shlex.split(self.rest)


def read_containerfile(text: str) -> list[Instruction]:
    """Return the instructions; continued lines are joined, comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    parts = [line.split(maxsplit=1) for line in joined.splitlines()]
    return [Instruction(name.upper(), rest.strip()) for name, rest in parts]


def copy_into(context: Path, words: list[str], folder: Path) -> None:
    """Copy what a COPY instruction names from `context`, as an image build does."""
    *sources, target = words
    to = folder / target
    for source in sources:
        given = context / source
        if given.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(given, to, ignore=ignored, dirs_exist_ok=True)
        elif given.is_file():
            into = to / given.name if target.endswith("/") or len(sources) > 1 else to
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(given, into)
        else:
            sys.exit(f"COPY names {source}, which does not exist.")


def serve_command(text: str) -> list[str]:
    """Return the words after the image's name in the comment's `docker run`."""
    found = re.search(r"^#\s+docker run .*? rocketeval (serve .+)$", text, re.MULTILINE)
    if found is None:
        sys.exit("The Containerfile's comment has no `docker run ... rocketeval serve ...`.")
    return shlex.split(found[1])


@dataclass
class Image:
    """What the instructions have made so far, in a scratch folder."""

    root: Path
    interpreter: Path
    folder: str = "/"
    user: str | None = None
    """The account that stands for the image's user; None for the user who runs the script."""
    debian: list[str] = field(default_factory=list)
    """Words of the apt commands, among them the packages."""
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @property
    def binaries(self) -> Path:
        """Where the environment has its programs."""
        return self.root / "usr" / "local" / "bin"

    def path(self, name: str) -> Path:
        """Return a path of the image in the scratch folder."""
        return self.root / name.lstrip("/")

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process in the image, and those that pip needs to find packages."""
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        paths = f"{self.binaries}:/usr/bin:/bin"
        libraries = str(self.interpreter.parents[1] / "lib")
        home = {"HOME": str(self.path(self.folder))} if self.user else {}
        return {**kept, "PATH": paths, "LD_LIBRARY_PATH": libraries, **home}

    def start(self, words: list[str], **more: str) -> subprocess.Popen[str]:
        """Start a program as the image's user, in its folder."""
        program = shutil.which(words[0], path=self.environment["PATH"])
        if program is None:
            sys.exit(f"{words[0]} is not installed.")
        return subprocess.Popen(
            [program, *words[1:]],
            cwd=self.path(self.folder),
            env={**self.environment, **more},
            user=self.user,
            group="nogroup" if self.user else None,
            extra_groups=[] if self.user else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, words: list[str]) -> str:
        """Run a program and return its output; exit if it fails."""
        process = self.start(words)
        output, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{shlex.join(words)} exited with {process.returncode}:\n{output}")
        return output

    def follow(self, step: Instruction) -> str:
        """Do what an instruction says; return what was done, in words."""
        if step.name == "WORKDIR":
            self.folder = step.rest
            self.path(step.rest).mkdir(parents=True, exist_ok=True)
            if self.user:
                shutil.chown(self.path(step.rest), self.user)
            return "made"
        if step.name == "COPY":
            copy_into(ROOT, step.words, self.path(self.folder))
            return "copied"
        if step.name == "RUN" and step.words[0] == "useradd":
            return f"not run: {NOBODY} stands for this user"
        if step.name == "RUN" and step.words[0] == "apt-get":
            self.debian += step.words
            return "not run: its packages are taken as installed"
        if step.name == "RUN":
            began = time.monotonic()
            self.run(["sh", "-c", step.rest])
            return f"{time.monotonic() - began:.0f} s"
        if step.name == "USER":
            self.user = NOBODY if os.geteuid() == 0 else None
            return f"{NOBODY} from here on" if self.user else "the user of this script is not root"
        if step.name == "ENTRYPOINT":
            self.entry = step.words
            return "kept"
        if step.name == "CMD":
            self.command = step.words
            return "kept"
        sys.exit(f"The script cannot follow {step.name}.")


def interpreter_in(root: Path, given: str) -> Path:
    """Return an interpreter that every user can read: a copy in `root` if it lies in a home."""
    asked = subprocess.run(
        [given, "-c", "import sys; print(sys.base_prefix, '%s.%s' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    )
    prefix, version = asked.stdout.split()
    program = Path(prefix) / "bin" / f"python{version}"
    if all(folder.stat().st_mode & 0o005 == 0o005 for folder in program.parents):
        return program
    copied = root / "python"
    ignored = shutil.ignore_patterns("site-packages", "test", "__pycache__")
    libraries = Path(f"lib/python{version}")
    shutil.copytree(Path(prefix) / libraries, copied / libraries, ignore=ignored, symlinks=True)
    (copied / "bin").mkdir()
    shutil.copy(program, copied / "bin")
    for library in (Path(prefix) / "lib").glob("libpython*"):
        shutil.copy(library, copied / "lib", follow_symlinks=False)
    return copied / "bin" / program.name


def ask(url: str, body: Mapping[str, object] | None = None, token: str = "") -> tuple[int, str]:
    """Return the status and the text of a server's answer; a body makes it a POST."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def wait_for(url: str, server: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the server's first answer; exit if it ends or does not start in time."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            output = server.stdout.read() if server.stdout else ""
            sys.exit(f"serve ended with {server.returncode}:\n{output}")
        try:
            return ask(url)
        except (URLError, OSError):
            time.sleep(0.5)
    sys.exit(f"serve gave no answer within {START_SECONDS} s.")


def check_server(image: Image, words: list[str]) -> None:
    """Start the server of the comment, with a judge made of rules, and ask it."""
    from word_judge import MODEL, serving

    with socket.socket() as free, serving() as judge:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        given = {"MODEL": MODEL, "URL": judge.base_url}
        words = [given.get(word, word) for word in words]
        # In a container the port is free; on this machine it may be taken.
        server = image.start([*image.entry, *words, "--port", str(port)], TOKEN="secret")
        try:
            url = f"http://127.0.0.1:{port}"
            status, health = wait_for(f"{url}/health", server)
            print(f"  GET /health: {status} {health}")
            described, text = ask(f"{url}/openapi.json")
            print(f"  GET /openapi.json: {described}, {len(json.loads(text)['paths'])} paths")
            body = {
                "query": "Can I get a refund?",
                "response": "Within 30 days. Thanks.",
                "checklist": ["Does the response mention 30 days?", "Is the response polite?"],
            }
            refused, _ = ask(f"{url}/v1/score", body)
            graded, reply = ask(f"{url}/v1/score", body, "secret")
            score = json.loads(reply).get("score")
            print(f"  POST /v1/score: {refused} without the token, {graded} with it: {score:.3f}")
            owner = Path(f"/proc/{server.pid}").stat().st_uid
            print(f"  the server's user id: {owner}")
        finally:
            server.send_signal(signal.SIGTERM)
            ended = server.wait(60)
        print(f"  after SIGTERM, as `docker stop` sends it: exit code {ended}")
        right = (status, described, refused, graded, ended) == (200, 200, 401, 200, 0)
        if not right or abs(score - (0.95 + 0.9) / 2) > 0.02 or (image.user and owner == 0):
            sys.exit("serve does not work as described.")


def foreign_libraries(image: Image) -> Iterator[tuple[str, str]]:
    """Yield package and name of each needed library that nothing in the image has.

    Debian's package of libgomp.so.1 is libgomp1, and so on.
    """
    (site,) = image.root.glob("usr/local/lib/python*/site-packages")
    files = [path for path in site.rglob("*.so*") if path.is_file()]
    own = {path.name for path in files}
    for path in files:
        shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", shown):
            known = name in own or name.replace(".so.", "") in image.debian
            if not known and not BASE_LIBRARIES.fullmatch(name):
                yield path.relative_to(site).parts[0], name


def main() -> None:
    """Follow the instructions, then run what they made."""
    text = (ROOT / "Containerfile").read_text()
    base, *steps = read_containerfile(text)
    version = re.fullmatch(r"python:(3\.\d+)(-\S+)?", base.rest)
    if base.name != "FROM" or version is None:
        sys.exit("The Containerfile does not start with FROM python:3.x.")
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=f"python{version[1]}", help="interpreter to use")
    given = parser.parse_args()
    with TemporaryDirectory() as home:
        root = Path(home)
        root.chmod(0o755)
        interpreter = interpreter_in(root, given.python)
        image = Image(root, interpreter)
        command = [str(interpreter), "-m", "venv", str(root / "usr" / "local")]
        subprocess.run(command, check=True, env=image.environment)
        shown = image.run(["python", "-V"]).strip()
        print(f"FROM {base.rest}: {shown}, a virtual environment in its place", flush=True)
        if version[1] not in shown:
            sys.exit(f"{shown} is not the version of the base image; give --python.")
        for step in steps:
            print(f"{step.name} {step.rest}: {image.follow(step)}", flush=True)
        shown = image.run([*image.entry, *image.command])
        print(f"{shlex.join([*image.entry, *image.command])}: {shown.splitlines()[0]}")
        print(image.run([*image.entry, "--version"]).strip())
        words = serve_command(text)
        print(shlex.join([*image.entry, *words]), flush=True)
        check_server(image, words)
        if not shutil.which("readelf"):
            print("shared libraries: not checked, because readelf is missing")
            return
        missing = sorted(set(foreign_libraries(image)))
        if missing:
            sys.exit(f"Shared libraries that the image lacks: {missing}")
        print("shared libraries: each is in a package, in the base image, or installed by apt")


if __name__ == "__main__":
    main()

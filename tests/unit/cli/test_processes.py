"""Commands that start something: what they hand over, and with which exit code they end. Nothing is started."""

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest
import yaml

import app.following.follower
import app.following.keeping
import app.following.reading
import app.service.serve
from app import cli
from app.base.errors import BadInput, NotFound, Unavailable
from app.base.settings import Settings
from app.cli import run, serve
from app.cli.output import ReaderGone
from app.following.follower import Task
from app.following.objects import Broken, manifests
from tests.support.instead import Instead, Machine

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]


def said(capsys: Captured, *words: str) -> tuple[int, list[str], list[str]]:
    """Exit code, lines on standard output, lines on standard error."""
    capsys.readouterr()
    code = run(list(words))
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err.splitlines()


class Follower:
    """What is made, and what it is told."""

    made: list[Any] = []
    runs: list[Json] = []
    stops = 0

    def __init__(self, *of: Any) -> None:
        self.made.append(of)

    def pulse(self) -> None:
        """Nothing."""

    def stop(self) -> None:
        Follower.stops += 1

    def run(self, **how: Any) -> None:
        self.runs.append(how)


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> Json:
    found: Json = {"signals": {}, "served": [], "broken": None}

    def connect(*of: Any) -> Any:
        if found["broken"]:
            raise Broken(found["broken"])
        return of

    def serving(cluster: str, pulse: Any, port: int) -> int:
        if port == 1:
            raise OSError(13, "Permission denied")
        found["served"].append((cluster, pulse.__name__, port))
        return port

    Follower.made, Follower.runs, Follower.stops = [], [], 0
    instead(app.following.reading, connect=connect, Reader=lambda client, recorder: client)
    instead(app.following.follower, Follower=Follower)
    instead(app.following.keeping, Arbiter=lambda *of: of)
    instead(app.following.follower, Tidy=lambda: "tidy", serve=serving)
    instead(app.following.follower.signal, signal=found["signals"].__setitem__)
    monkeypatch.setattr(app.following.follower.os, "_exit", found.get)  # the timer may still run after the test
    return found


COMMAND = ("follow", "kueue", "--snapshot", "s", "--configuration", "c")


def test_following_takes_its_cluster_and_its_service(following: Json, capsys: Captured) -> None:
    assert said(capsys, *COMMAND, "--url", "http://h") == (0, [], [])
    ((task, reader, arbiter, tidy),) = Follower.made
    assert (task, reader, arbiter, tidy) == (
        Task("kueue", "s", "s", "c"), (None, None), ("http://h", None), "tidy"
    )  # fmt: skip
    assert Follower.runs == [{"once": False}]
    assert following["served"] == []
    more = ("--cluster", "prod", "--context", "k", "--kubeconfig", "f", "--once", "--shadow", "--namespace", "n",
            "--metrics-port", "0", "--token", "t")  # fmt: skip
    assert said(capsys, *COMMAND, *more)[0] == 0
    task, reader, arbiter, _ = Follower.made[1]
    assert (task, reader) == (Task("kueue", "prod", "s", "c", shadow=True, namespace="n"), ("k", "f"))
    assert (arbiter[0].startswith("http://127.0.0.1:"), arbiter[1]) == (True, "t")
    assert Follower.runs[1] == {"once": True}
    assert following["served"] == [("prod", "pulse", 0)]
    for number in (signal.SIGINT, signal.SIGTERM):
        following["signals"][number](number, None)
    assert Follower.stops == 2


def test_following_once_ends_with_what_is_wrong(following: Json, capsys: Captured, instead: Instead) -> None:
    instead(Follower, run=lambda self, once: "workloads: 403 forbidden" if once else None)
    assert said(capsys, *COMMAND, "--once") == (4, [], ["workloads: 403 forbidden"])
    assert said(capsys, *COMMAND)[0] == 0


def test_following_says_what_is_missing(following: Json, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(capsys, *COMMAND, "--metrics-port", "1") == (3, [], ["no metrics at port 1: Permission denied"])
    assert Follower.runs == []
    for port in ("-1", "65536"):
        assert said(capsys, *COMMAND, "--metrics-port", port)[0] == 3
    following["broken"] = "no cluster to follow: none"
    assert said(capsys, *COMMAND) == (4, [], ["no cluster to follow: none"])
    monkeypatch.setitem(sys.modules, "app.following.reading", None)
    code, _, (complaint,) = said(capsys, *COMMAND)
    assert (code, complaint.startswith("following a cluster needs the extra arbiter-preemption[kubernetes]")) == (
        3,
        True,
    )


def test_rights_are_a_manifest(capsys: Captured) -> None:
    code, lines, _ = said(capsys, "rights", "kai")
    assert (code, list(yaml.safe_load_all("\n".join(lines)))) == (0, manifests("kai", "default", "arbiter-follower"))
    assert lines[0] == "apiVersion: v1", "in the order in which people write them"
    words = ("-n", "ns", "--account", "acc", "--shadow", "--yunikorn-namespace", "y")
    lines = said(capsys, "rights", "yunikorn", *words)[1]
    assert list(yaml.safe_load_all("\n".join(lines))) == manifests("yunikorn", "ns", "acc", shadow=True, within="y")


@pytest.fixture
def served(instead: Instead) -> list[Any]:
    found: list[Any] = []

    def start(*of: Any) -> int:
        found.append(of)
        return 7

    instead(app.service.serve, run=start)
    return found


def test_a_service_is_started_as_the_command_says(served: list[Any], capsys: Captured) -> None:
    assert said(capsys, "serve", "--host", "0.0.0.0", "--port", "81", "--workers", "3")[0] == 7
    settings, announce, beside = served[0]
    assert (settings.host, settings.port, settings.workers, beside) == ("0.0.0.0", 81, 3, None)
    assert announce is serve.announce
    said(capsys, "serve")
    assert (served[1][0].host, served[1][0].port) == (Settings().host, Settings().port)
    assert said(capsys, "serve", "--port", "70000")[0] == 3
    assert len(served) == 2


def test_a_service_follows_clusters_beside_it(served: list[Any], capsys: Captured) -> None:
    words = ("--follow", "kueue:prod", "--follow", "kai:lab:ctx:1", "--token", "t")
    assert said(capsys, "serve", *words)[0] == 7
    companions = served[0][2]("http://h")
    told = [msgspec.json.decode(one._settings) for one in companions]
    assert told == [
        {"engine": "kueue", "cluster": "prod", "url": "http://h", "token": "t", "context": None},
        {"engine": "kai", "cluster": "lab", "url": "http://h", "token": "t", "context": "ctx:1"},
    ]
    for given in ("slurm:x", "kueue", "kueue:", "kueue:a/b", "kueue:-a", f"kueue:{'x' * 129}"):
        code, _, (complaint,) = said(capsys, "serve", "--follow", given)
        assert (code, complaint) == (
            3, f"--follow {given}: ENGINE:NAME is expected, with one of kueue, kai, yunikorn, kube-scheduler",
        )  # fmt: skip
    assert said(capsys, "serve", "--follow", f"kueue:{'x' * 128}")[0] == 7
    assert said(capsys, "serve", "--follow", "kueue:a", "--follow", "kai:a")[::2] == (
        3, ["--follow: two clusters of one name"],
    )  # fmt: skip


def test_a_service_that_wants_a_token_is_followed_with_one(
    served: list[Any], capsys: Captured, monkeypatch: pytest.MonkeyPatch, instead: Instead
) -> None:
    monkeypatch.setenv("ARBITER_AUTHENTICATION", "required")
    assert Settings().authentication == "required"
    assert said(capsys, "serve", "--follow", "kueue:a")[::2] == (
        3, ["--follow: the service wants a token: --token or ARBITER_TOKEN"],
    )  # fmt: skip
    assert said(capsys, "serve", "--follow", "kueue:a", "--token", "t")[0] == 7
    assert said(capsys, "serve")[0] == 7
    instead(serve, find_spec=lambda name: None if name == "kubernetes" else 1)
    assert said(capsys, "serve", "--follow", "kueue:a", "--token", "t")[::2] == (
        3, ["--follow: following a cluster needs the extra arbiter-preemption[kubernetes]"],
    )  # fmt: skip


class Own:
    """The service's own PostgreSQL; ``ran``: what became of each."""

    ran: list[str] = []
    fails: Exception | None = None

    def __init__(self, folder: Any, say: Any) -> None:
        self.ran.append("made")

    def start(self) -> str:
        self.ran.append("started")
        if self.fails is not None:
            raise self.fails
        return "postgresql://own"

    def stop(self) -> None:
        self.ran.append("stopped")


class Database:
    """A database at a revision."""

    before: str | None = None

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        Own.ran.append(f"opened {url}")

    def migration_state(self) -> tuple[str | None, Any]:
        return self.before, None

    def close(self) -> None:
        Own.ran.append("closed")


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> Any:
    Own.ran, Own.fails, Database.before = [], None, None
    monkeypatch.delenv("DATABASE_URL", raising=False)
    instead("app.db.embedded", EmbeddedPostgres=Own)
    instead(
        "app.db.database",
        Database=Database,
        migrate=lambda url: Own.ran.append(f"migrated {url}"),
        head_revision=lambda: "0009",
        is_newer=lambda before: before == "0010",
    )
    return Own


@pytest.mark.parametrize(
    ("before", "said_of_it"),
    [
        (None, "from an empty database to 0009"), ("0008", "from 0008 to 0009"), ("0009", "already at 0009"),
        ("0010", "at 0010, which is newer than 0009: nothing to do"),
    ],
)  # fmt: skip
def test_a_database_is_brought_up_to_date(database: Any, capsys: Captured, before: str | None, said_of_it: str) -> None:
    Database.before = before
    assert said(capsys, "database", "upgrade") == (0, [said_of_it], [])
    own = "postgresql://own"
    assert Own.ran == ["made", "started", f"opened {own}", "closed", f"migrated {own}", "stopped"]


def test_a_named_database_is_the_one_that_is_meant(
    database: Any, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://named/x"
    monkeypatch.setenv("DATABASE_URL", url)
    assert said(capsys, "database", "upgrade")[0] == 0
    assert all("own" not in one for one in Own.ran)
    assert [one.partition(" ")[0] for one in Own.ran] == ["opened", "closed", "migrated"]


def test_a_database_that_is_away_is_said(database: Any, capsys: Captured) -> None:
    Own.fails = Unavailable("away")
    for words in (("database", "upgrade"), ("token", "list")):
        Own.ran.clear()
        assert said(capsys, *words) == (4, [], ["away"])
        assert Own.ran == ["made", "started", "stopped"]


class Tokens:
    """Those of a database; ``done``: what was asked of it, and by whom."""

    done: list[Any] = []
    fails: Exception | None = None

    def __init__(self, database: Database) -> None:
        self.url = database.url

    def create(self, name: str, scopes: list[str], expires: datetime | None) -> tuple[str, None]:
        from app.auth.audit import current_actor

        self.done.append((name, scopes, expires, current_actor().partition(":")[0]))
        if self.fails is not None:
            raise self.fails
        return "secret", None

    def every(self) -> list[Any]:
        def row(number: int, **more: Any) -> Any:
            return SimpleNamespace(**{
                "id": number, "name": f"n{number}", "scopes": ["read"], "revoked_at": None, "expires_at": None, **more,
            })  # fmt: skip

        day = datetime(2026, 3, 2, tzinfo=UTC)
        return [row(1), row(2, expires_at=day, scopes=["decide", "read"]), row(3, expires_at=day, revoked_at=day)]

    def revoke(self, identity: UUID) -> Any:
        return SimpleNamespace(name=f"who-{identity.int}")


@pytest.fixture
def tokens(database: Any, instead: Instead) -> type[Tokens]:
    Tokens.done, Tokens.fails = [], None
    instead("app.auth.tokens", Tokens=Tokens)
    return Tokens


def test_tokens_are_made_listed_and_revoked(tokens: type[Tokens], capsys: Captured) -> None:
    words = ("token", "create", "ci", "--scope", "read", "--scope", "decide", "--scope", "read")
    assert said(capsys, *words) == (0, ["secret"], [])
    assert tokens.done == [("ci", ["read", "decide"], None, "cli")]
    assert Own.ran[-2:] == ["closed", "stopped"]
    before = datetime.now(UTC)
    said(capsys, *words, "--days", "1.5")
    assert timedelta(0) <= tokens.done[1][2] - before - timedelta(days=1.5) < timedelta(minutes=10)
    assert said(capsys, "token", "list")[:2] == (0, [
        "1  read               valid            n1", "2  decide,read        until 2026-03-02 n2",
        "3  read               revoked          n3",
    ])  # fmt: skip
    assert said(capsys, "token", "revoke", str(UUID(int=7))) == (0, ["revoked who-7"], [])
    assert said(capsys, *words, "--days", "1e12") == (3, [], ["--days 1e+12: no calendar goes that far"])
    for error in (BadInput([]), NotFound("there is none")):
        tokens.fails = error
        Own.ran.clear()
        assert said(capsys, *words) == (3, [], [error.detail])
        assert Own.ran[-2:] == ["closed", "stopped"]


def test_a_worker_needs_a_database(capsys: Captured, monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    ran: list[Any] = []

    class Companion:
        def __init__(self, *of: Any) -> None:
            ran.append(of)

        def run(self) -> None:
            ran.append("ran")

    instead("app.jobs.service", Companion=Companion)
    instead("app.base.logs", configure=lambda settings: ran.append("logs"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert said(capsys, "worker") == (3, [], ["DATABASE_URL must name the database of the service"])
    assert ran == []
    monkeypatch.setenv("DATABASE_URL", "postgresql://u@h/x")
    assert said(capsys, "worker")[:2] == (0, ["waiting for simulations"])
    logs, (module, settings), last = ran
    assert (logs, module, last) == ("logs", "app.service.background", "ran")
    assert "postgresql" in settings
    monkeypatch.setenv("WORKERS", "many")
    assert said(capsys, "worker")[0] == 3


def test_the_console_script_ends_with_the_code(machine: Machine, instead: Instead) -> None:
    instead(cli, run=lambda: 2)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    moved: list[tuple[int, int]] = []
    instead(cli.os, dup2=lambda *of: moved.append(of))
    for gone in (ReaderGone(), BrokenPipeError()):

        def read(gone: Exception = gone) -> int:
            raise gone

        instead(cli, run=read)
        machine.shows(SimpleNamespace(fileno=lambda: 99, flush=lambda: None), of="stdout")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 141
    assert [to for _, to in moved] == [99, 99]
    for opened, _ in moved:
        os.close(opened)


def test_a_command_that_says_no_code_has_done_what_it_should(capsys: Captured) -> None:
    code, (line,), _ = said(capsys, "--version")
    assert (code, line.split()[0]) == (0, "arbiter")
    assert said(capsys, "completion", "bash")[0] == 0
    assert said(capsys, "no-such-command")[0] == 3

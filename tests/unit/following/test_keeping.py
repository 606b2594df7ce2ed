"""What a follower keeps at the service: one snapshot, also where others write it, and the last good configuration."""

from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace as replaced

from app.answering.snapshots import Counts, SnapshotStatus
from app.following import keeping
from app.following.grouped import Translated
from app.following.keeping import ApiError, Arbiter, Keeper, NotYet, Reply
from app.solver.model import kai
from app.solver.model import kueue as model
from app.solver.model.configuration import Configuration, Queue, Settings
from app.solver.model.decision import ConfigurationUsed
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, Node, Workload
from tests.support.instead import Clock, Instead

EVERY = 2.0
WANTED = Configuration(engine="kueue")


class Service:
    """Configurations that are as they should be, and one snapshot."""

    def __init__(self, stored: Configuration = WANTED) -> None:
        self.generation = 0
        self.stored = stored
        self.put: Any = None

    def ask(self, method: str, kind: str, *_: str, body: Any = None, headers: Any = None) -> Reply:
        """As the real one answers. Raises ApiError."""
        del headers
        if kind == "configurations":
            if method == "PUT":
                raise ApiError(422, "invalid", "no such parent")
            return Reply(msgspec.json.encode({"configuration": self.stored}), '"1"')
        self.put = body if method == "PUT" else self.put
        if method == "POST" and body.generation != self.generation:
            raise ApiError(409, "stale_generation", "stale")
        self.generation += method != "GET"
        used = ConfigurationUsed(digest="d")
        counts = Counts(nodes=0, workloads=0, tasks=0, reservations=0, asks=0)
        return Reply(msgspec.json.encode(SnapshotStatus(
            name="s", generation=self.generation, engine="kueue", configuration=used, counts=counts, age_seconds=0.0,
            idle_seconds=0.0, bytes=1,
        )), None)  # fmt: skip


def turn(keeper: Keeper) -> str | None:
    """What a follower does every two seconds; why it leaves the snapshot to somebody else."""
    keeper.check()
    if (left := keeper.left()) is not None:
        return left
    try:
        keeper.keep(Translated(WANTED, {}, {}, {}, [], {}, {}), {}, writer=False)
    except NotYet as error:
        return str(error)
    return None


def test_two_that_write_one_snapshot_do_not_fight_for_ever(clock: Clock) -> None:
    clock.drives(keeping)
    clock.now = 1000.0
    service = Service()
    two = [Keeper(cast(Arbiter, service), "c", "s") for _ in range(2)]
    said: list[str | None] = []
    both = 0
    for _ in range(1800):
        clock.sleep(EVERY)
        told = [turn(keeper) for keeper in two]
        said += told
        both += told == [None, None]
    puts = sum(keeper.puts.total() for keeper in two)
    assert puts < 60, "they took it from one another again and again"
    assert both < 60
    assert sum(one is None for one in said) > 1700, "nobody kept it"
    assert "is written by somebody else too" in str(next(one for one in said if one))
    left = two[0] if two[0].left() is None else two[1]
    for _ in range(400):
        clock.sleep(EVERY)
        turn(left)
    assert turn(left) is None, "who is alone keeps it"
    assert left.status is not None
    assert left.status.generation == service.generation


def test_a_snapshot_that_was_written_once_by_another_is_taken_back_at_once() -> None:
    service = Service()
    keeper = Keeper(cast(Arbiter, service), "c", "s")
    assert turn(keeper) is None
    service.generation += 1
    assert turn(keeper) is None
    assert keeper.puts == {"configuration": 1, "stale_generation": 1}


def test_a_configuration_that_is_refused_is_a_finding_and_the_last_good_one_stays() -> None:
    service = Service(Configuration(engine="kueue", queues=[Queue(name="known")]))
    wanted = Configuration(engine="kueue", queues=[Queue(name="known"), Queue(name="wrong", parent="nobody")])
    running = {name: Workload(id=name, queue=name) for name in ("known", "wrong")}
    keeper = Keeper(cast(Arbiter, service), "c", "s")
    keeper.keep(Translated(wanted, {}, running, {}, [], {}, {}), {}, writer=True)
    assert [(one.severity, one.detail) for one in keeper.refused] == [("error", "no such parent")]
    assert [one.id for one in service.put.state.workloads] == ["known"]
    with pytest.raises(NotYet, match="by another follower"):
        Keeper(cast(Arbiter, service), "c", "s").keep(Translated(wanted, {}, {}, {}, [], {}, {}), {}, writer=False)


def test_an_upgrade_is_a_revision_and_nothing_else_that_an_administrator_set_changes() -> None:
    own = kai.Settings(rules="documented", max_consolidation_preemptees=3)
    store = Store(Configuration(engine="kai", settings=Settings(kai=own)))
    keeper = Keeper(cast(Arbiter, store), "c", "s")

    def kept(release: str | None) -> tuple[Any, str | None]:
        said = Settings(kai=kai.Settings(release=cast(kai.Release, release or "0.17")))
        findings = [] if release else [Finding(rule="release", severity="warning", pointer="", detail="nothing says")]
        configuration = Configuration(engine="kai", settings=said, findings=findings)
        keeper.keep(Translated(configuration, {}, {}, {}, [], {}, {}, release=release), {}, writer=True)
        comment = next((head["X-Comment"] for name, _, head in store.asked if name == "PUT configurations/c"), None)
        store.asked.clear()
        assert store.stored is not None
        return store.stored.settings.kai, comment

    assert kept("0.13") == (own, None)
    assert kept("0.17") == (replaced(own, release="0.17"), "followed from the cluster: release 0.13 became 0.17")
    assert kept(None) == (replaced(own, release="0.17"), "followed from the cluster: its findings")
    assert kept("0.13") == (own, "followed from the cluster: release 0.17 became 0.13")


ETAG = '"3"'
OLD = Configuration(engine="kueue", queues=[Queue(name="old")])
NEW = Configuration(engine="kueue", queues=[Queue(name="new")])


class Store:
    """One configuration and one snapshot. ``refuse``: what is refused next, by the start of method and path;
    ``asked``: methods, paths, bodies and headers, but for looks at the configuration."""

    def __init__(self, stored: Configuration | None = None, etag: str | None = ETAG) -> None:
        self.stored = stored
        self.etag = etag
        self.generation = 0
        self.refuse: dict[str, ApiError] = {}
        self.asked: list[tuple[str, Any, Any]] = []

    def ask(self, method: str, *path: str, body: Any = None, headers: Any = None) -> Reply:
        """As the real one answers. Raises ApiError."""
        told = f"{method} {'/'.join(path)}"
        if told != "GET configurations/c":
            self.asked.append((told, body, headers))
        if told in self.refuse:
            raise self.refuse.pop(told)
        if path[0] == "configurations":
            if method == "PUT":
                self.stored = body
            if self.stored is None:
                raise ApiError(404, "not_found", "there is none")
            return Reply(msgspec.json.encode({"configuration": self.stored}), self.etag)
        self.generation += method != "GET"
        return Reply(msgspec.json.encode(status(self.generation)), None)

    def told(self) -> list[str]:
        """What was asked since, without its bodies."""
        said = [one for one, *_ in self.asked]
        self.asked.clear()
        return said


def status(generation: int) -> SnapshotStatus:
    counts = Counts(nodes=0, workloads=0, tasks=0, reservations=0)
    return SnapshotStatus(
        name="s", generation=generation, engine="kueue", configuration=ConfigurationUsed(digest="d"), counts=counts,
        age_seconds=0.0, idle_seconds=0.0, bytes=1,
    )  # fmt: skip


def keeper(store: Store) -> Keeper:
    return Keeper(cast(Arbiter, store), "c", "s")


def cluster(configuration: Configuration, *queues: str) -> Translated:
    running = {name: Workload(id=name, queue=name) for name in queues}
    waiting = {f"ask-{name}": Ask(id=f"ask-{name}", queue=name, tasks=[]) for name in queues}
    nodes = {"n": Node(name="n", capacity={"cpu": 1})}
    return Translated(configuration, nodes, running, waiting, [], {}, {})


PUT_C, PUT_S, DELTA, LOOK = "PUT configurations/c", "PUT snapshots/s", "POST snapshots/s/deltas", "GET snapshots/s"


def test_the_first_time_all_is_put_then_what_changed() -> None:
    store = Store()
    made = keeper(store)
    made.keep(cluster(NEW, "new"), {"Pod": "1"}, writer=True)
    (_, configuration, headers), (_, body, _) = store.asked
    assert configuration == NEW
    assert headers == {"X-Comment": "followed from the cluster: 1 queues", "If-None-Match": "*"}
    assert (body.engine, body.configuration, body.resource_versions) == ("kueue", "c", {"Pod": "1"})
    assert [one.name for one in body.state.nodes] == ["n"]
    assert ([one.id for one in body.state.workloads], [one.id for one in body.asks]) == (["new"], ["ask-new"])
    assert store.told() == [PUT_C, PUT_S]
    made.keep(cluster(NEW), {"Pod": "2"}, writer=False)
    ((told, change, _),) = store.asked
    assert told == DELTA
    assert (change.generation, change.workloads.remove, change.resource_versions) == (1, ["new"], {"Pod": "2"})
    store.told()
    made.keep(cluster(NEW, "new"), {}, writer=False)
    assert store.asked[0][1].generation == 2
    assert made.status == status(3)
    assert made.puts == {"configuration": 1}


def test_settings_are_an_administrators_and_a_change_names_what_it_replaces() -> None:
    settings = Settings(kueue=model.Settings(fair_sharing=True))
    store = Store(msgspec.structs.replace(OLD, settings=settings))
    made = keeper(store)
    made.keep(cluster(OLD), {}, writer=False)
    assert store.told() == [PUT_S], "it is what it should be but for the settings"
    made.keep(cluster(NEW), {}, writer=True)
    (_, document, headers), _ = store.asked
    assert document == msgspec.structs.replace(NEW, settings=settings)
    assert headers == {
        "X-Comment": "followed from the cluster: queue new added; queue old removed", "If-Match": ETAG,
    }  # fmt: skip
    assert store.told() == [PUT_C, PUT_S]
    made.keep(cluster(NEW), {}, writer=True)
    assert store.told() == [DELTA]


def test_a_comment_of_any_letters_is_sent_as_it_is_stored() -> None:
    store = Store(OLD)
    keeper(store).keep(cluster(Configuration(queues=[Queue(name="größer-Ω")])), {}, writer=True)
    comment = store.asked[0][2]["X-Comment"]
    assert comment.encode("latin-1").decode() == "followed from the cluster: queue größer-Ω added; queue old removed"


@pytest.mark.parametrize(
    ("stored", "refused", "raised"),
    [
        (OLD, ApiError(412, "precondition_failed", "no"), "somebody else has just written the configuration"),
        (None, ApiError(412, "precondition_failed", "no"), "somebody else has just written the configuration"),
        (OLD, ApiError(403, "forbidden", "no"), "no"),
        (None, ApiError(422, "invalid", "no such parent"), "no such parent"),
    ],
)
def test_a_configuration_that_can_not_be_written_stops_what_hangs_on_it(
    stored: Configuration | None, refused: ApiError, raised: str
) -> None:
    store = Store(stored)
    store.refuse[PUT_C] = refused
    made = keeper(store)
    with pytest.raises(ApiError if refused.status == 403 else NotYet, match=f"^{raised}$"):
        made.keep(cluster(NEW), {}, writer=True)
    assert store.told() == [PUT_C]
    assert [one.detail for one in made.refused] == ([raised] if refused.status == 422 else [])
    made.keep(cluster(NEW), {}, writer=True)
    assert store.told() == [PUT_C, PUT_S], "it is tried again"
    assert made.refused == []


def test_a_store_that_refuses_to_say_what_it_has_is_not_written_to() -> None:
    store = Store(OLD)

    def ask(method: str, *path: str, **_: Any) -> Reply:
        assert (method, path) == ("GET", ("configurations", "c"))
        raise ApiError(403, "forbidden", "no")

    store.ask = ask  # pyright: ignore
    with pytest.raises(ApiError, match="no"):
        keeper(store).keep(cluster(NEW), {}, writer=True)


def test_a_refused_configuration_is_not_written_again_before_it_changes() -> None:
    store = Store(OLD)
    store.refuse[PUT_C] = ApiError(422, "invalid", "no such parent")
    made = keeper(store)
    made.keep(cluster(NEW, "new", "old"), {}, writer=True)
    assert [(one.rule, one.severity, one.pointer) for one in made.refused] == [("refused", "error", "/configuration")]
    body = store.asked[-1][1]
    assert ([one.id for one in body.state.workloads], [one.id for one in body.asks]) == (["old"], ["ask-old"])
    assert [one.name for one in body.state.nodes] == ["n"]
    assert store.stored == msgspec.structs.replace(OLD, findings=made.refused), (
        "who decides by the last good one hears of it"
    )
    assert store.told() == [PUT_C, PUT_C, PUT_S]
    since = made.held_since
    assert since is not None
    (lost,) = made.left_out()
    assert lost.detail == "2 workloads of queues that the stored configuration lacks are left out: new (2)"
    made.keep(cluster(NEW, "new"), {}, writer=True)
    assert made.held_since == since, "it is held since then"
    assert store.asked[0][1].workloads.remove == ["old"], "what has no queue stays away"
    assert store.told() == [DELTA]
    made.keep(cluster(OLD, "old"), {}, writer=True)
    assert (made.refused, store.stored, store.told()) == ([], OLD, [PUT_C, PUT_S])
    assert made.puts == {"configuration": 2}
    assert (made.held_since, made.left_out()) == (None, [])


def test_a_queue_that_is_left_out_is_missed_by_its_parent_by_what_is_below_and_by_its_work() -> None:
    """Two of a cohort and one below: who lacks its quota is in the document, how much of its work is left out is told
    alone, since a document that counted work would be another one with each change."""
    queues = [Queue(name="team"), Queue(name="bad", parent="team"), Queue(name="low", parent="bad"),
              Queue(name="alone")]  # fmt: skip
    store, wanted = Store(), msgspec.structs.replace(NEW, queues=queues)
    store.refuse[PUT_C] = ApiError(
        422, "invalid", "no", {"/queues/1/quota/cpu": "is odd", "/queues/3/weight": "is odd too"}
    )
    made = keeper(store)
    made.keep(cluster(wanted, "team", "bad", "low"), {}, writer=True)
    bad = (
        "queue bad, with all work in it, is left out: quota/cpu: is odd; 'team' lacks its quota; "
        "1 queues lack what is above them"
    )
    alone = "queue alone, with all work in it, is left out: weight: is odd too"
    assert store.stored is not None
    assert [one.name for one in store.stored.queues] == ["team", "low"]
    assert [one.detail for one in store.stored.findings] == [bad, alone]
    assert [one.detail for one in made.left_out()] == [f"{bad}; 2 workloads are left out with it", alone]
    assert made.held_since is None, "but for these it is what the cluster says"
    made.keep(cluster(wanted, "team", "low"), {}, writer=True)
    assert [one.detail for one in made.left_out()] == [bad, alone]
    assert [one.detail for one in store.stored.findings] == [bad, alone]


def test_of_many_queues_that_the_configuration_lacks_a_few_are_named() -> None:
    store = Store(OLD)
    store.refuse[PUT_C] = ApiError(422, "invalid", "no such parent")
    made = keeper(store)
    made.keep(cluster(NEW, *(f"q{i}" for i in range(7))), {}, writer=True)
    (lost,) = made.left_out()
    named = ", ".join(f"q{i} (2)" for i in range(5))
    assert lost.detail == (
        f"14 workloads of queues that the stored configuration lacks are left out: {named} and 2 more"
    )


def test_who_does_not_write_knows_too_that_it_is_held() -> None:
    held = Finding(rule="refused", severity="error", pointer="/configuration", detail="no such parent")
    part = msgspec.structs.replace(held, pointer="")
    for finding, is_held in ((held, True), (part, False)):
        made = keeper(Store(msgspec.structs.replace(OLD, findings=[finding])))
        made.keep(cluster(NEW, "old"), {}, writer=False)
        assert (made.held_since is not None) == is_held


def test_a_last_good_configuration_that_may_not_be_written_either_stays_as_it_is() -> None:
    store, no = Store(OLD), ApiError(422, "invalid", "no such parent")
    ask = store.ask

    def refusing(method: str, *path: str, **more: Any) -> Reply:
        if method == "PUT" and path[0] == "configurations":
            raise no
        return ask(method, *path, **more)

    store.ask = refusing  # pyright: ignore
    made = keeper(store)
    made.keep(cluster(NEW, "old"), {}, writer=True)
    assert (store.stored, store.told(), len(made.refused)) == (OLD, [PUT_S], 1)


FOUND = Finding(rule="not-decided", severity="warning", pointer="/ClusterQueue/q/spec", detail="left")


def test_findings_are_written_by_the_writer_and_keep_nobody_else_waiting() -> None:
    store = Store(OLD)
    wanted = replace(cluster(msgspec.structs.replace(OLD, findings=[FOUND]), "old"), of_state=[FOUND])
    other = keeper(store)
    other.keep(wanted, {}, writer=False)
    assert (store.stored, store.told()) == (OLD, [PUT_S])
    made = keeper(store)
    made.keep(wanted, {}, writer=True)
    assert store.stored == wanted.configuration
    assert store.asked[0][2]["X-Comment"] == "followed from the cluster: its findings"
    assert store.asked[-1][1].state.findings == [FOUND]


def test_a_delta_has_the_findings_where_they_are_others() -> None:
    store = Store(OLD)
    made, found = keeper(store), replace(cluster(OLD, "old"), of_state=[FOUND])
    for of_state in ([], [FOUND], [FOUND], []):
        made.keep(replace(found, of_state=of_state), {}, writer=True)
    assert [body.findings for told, body, _ in store.asked if told == DELTA] == [[FOUND], None, []]


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (ApiError(409, "stale_generation", "x"), "stale_generation"),
        (ApiError(404, "snapshot_not_found", "x"), "snapshot_not_found"),
        (ApiError(409, "", "x"), "refused"),
        (ApiError(422, "invalid", "x"), "refused"),
    ],
)
def test_a_delta_that_is_refused_is_put_whole_and_says_why(refused: ApiError, reason: str) -> None:
    store = Store(OLD)
    made = keeper(store)
    made.keep(cluster(OLD, "old"), {}, writer=False)
    store.told()
    store.refuse[DELTA] = refused
    made.keep(cluster(OLD, "old"), {}, writer=False)
    assert store.told() == [DELTA, PUT_S]
    assert made.puts == {"configuration": 1, reason: 1}


def test_a_put_that_did_not_arrive_is_put_again_for_the_same_reason() -> None:
    store = Store(OLD)
    made = keeper(store)
    store.refuse[PUT_S] = ApiError(422, "invalid", "x")
    with pytest.raises(ApiError):
        made.keep(cluster(OLD), {}, writer=False)
    assert made.puts == {}
    made.keep(cluster(OLD), {}, writer=False)
    assert (made.puts, store.told()) == ({"configuration": 1}, [PUT_S, PUT_S])
    store.refuse |= {DELTA: ApiError(404, "snapshot_not_found", "x"), PUT_S: ApiError(422, "invalid", "x")}
    with pytest.raises(ApiError):
        made.keep(cluster(OLD), {}, writer=False)
    made.keep(cluster(OLD), {}, writer=False)
    assert made.puts == {"configuration": 1, "snapshot_not_found": 1}


def test_whether_the_snapshot_is_there_is_asked_once_it_was_put() -> None:
    store = Store(OLD)
    made = keeper(store)
    assert made.check()
    assert store.told() == []
    made.keep(cluster(OLD), {}, writer=False)
    assert made.check()
    assert store.told() == [PUT_S, LOOK]
    for status, code, reason in ((404, "snapshot_lost", "snapshot_lost"), (403, "", "refused")):
        store.refuse[LOOK] = ApiError(status, code, "x")
        assert not made.check()
        assert store.told() == [LOOK]
        assert made.check(), "it is known to be lost"
        assert store.told() == []
        made.keep(cluster(OLD), {}, writer=False)
        assert store.told() == [PUT_S]
        assert made.puts[reason] == 1
    store.generation += 1
    assert not made.check()
    made.keep(cluster(OLD), {}, writer=False)
    assert made.puts["stale_generation"] == 1


def test_who_loses_it_again_leaves_it_for_ever_longer_and_calm_begins_anew(clock: Clock, instead: Instead) -> None:
    clock.drives(keeping)
    clock.now = 50_000.0
    instead(keeping.random, uniform=lambda low, high: high if 2 * low == high else -1.0)
    store = Store(OLD)
    made = keeper(store)
    made.keep(cluster(OLD), {}, writer=False)

    def lost() -> float:
        """For how long it is left after it was lost once more."""
        store.generation += 1
        assert not made.check()
        begun = clock.now
        while made.left() is not None:
            clock.now += 5.0
        made.keep(cluster(OLD), {}, writer=False)
        return clock.now - begun

    assert [lost() for _ in range(9)] == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    clock.now += 600.0  # 900 since it was lost
    assert lost() == 300.0
    clock.now += 601.0
    assert [lost(), lost()] == [0.0, 10.0]
    store.refuse[DELTA] = ApiError(409, "stale_generation", "x")
    with pytest.raises(NotYet, match="snapshot 's' is written by somebody else too"):
        made.keep(cluster(OLD), {}, writer=False)
    store.refuse[DELTA] = ApiError(409, "busy", "x")
    clock.now += 1000.0
    made.keep(cluster(OLD), {}, writer=False)

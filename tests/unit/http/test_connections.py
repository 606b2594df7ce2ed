"""Who makes room, and whose time is up."""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.http import protocol as module
from app.http.protocol import Connections, Limits, Phase
from tests.support.instead import Instead


@dataclass(eq=False)
class Peer:
    name: str
    phase: Phase = "head"
    since: float = 0.0
    sent: int = 0
    paused: bool = False
    address: str = "somewhere"
    told: list[str] = field(default_factory=list[str])

    def overdue(self) -> None:
        self.told.append("overdue")

    def unsent(self) -> int:
        return self.sent

    def reading_is_paused(self) -> bool:
        return self.paused

    def drop(self) -> None:
        self.told.append("dropped")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


LIMITS = Limits(connections=3, head=10, body=30, idle=75, stream=300, answer=30, untaken=1 << 20)


def full() -> tuple[Connections, Clock, list[Peer]]:
    """Three connections, that joined one second after the other."""
    clock, peers = Clock(), [Peer("a"), Peer("b"), Peer("c")]
    connections = Connections(LIMITS, clock)
    for peer in peers:
        clock.now += 1
        assert connections.joined(peer)
    return connections, clock, peers


def test_the_one_waited_for_longest_makes_room() -> None:
    connections, _, (a, b, c) = full()
    connections.enter(a, "body")
    assert connections.joined(Peer("d"))
    assert (a.told, b.told, c.told) == ([], ["dropped"], [])
    assert len(connections) == 3


def test_nobody_who_is_being_answered_makes_room() -> None:
    connections, _, peers = full()
    for peer in peers:
        connections.enter(peer, "answer")
    assert not connections.joined(Peer("d"))
    assert [peer.told for peer in peers] == [[], [], []]
    connections.enter(peers[1], "idle")
    assert connections.joined(Peer("d"))
    assert peers[1].told == ["dropped"]


def test_who_has_more_than_half_makes_room_for_others_even_while_answered() -> None:
    connections, _, (a, b, c) = full()
    c.address = "elsewhere"
    connections.left(c)
    assert connections.joined(c)
    for peer in (a, b, c):
        connections.enter(peer, "answer")
    assert not connections.joined(Peer("d"))  # of the one who has most
    assert connections.joined(Peer("d", address="elsewhere"))
    assert (a.told, b.told, c.told) == ([], ["dropped"], [])


def test_who_has_half_or_less_makes_no_room_while_answered() -> None:
    connections = Connections(Limits(connections=4), Clock())
    peers = [Peer(name, address=name) for name in "abcc"]
    for peer in peers:
        assert connections.joined(peer)
        connections.enter(peer, "answer")
    assert not connections.joined(Peer("d", address="d"))
    assert not any(peer.told for peer in peers)


def test_each_phase_has_its_limit_and_progress_begins_it_anew() -> None:
    limits: dict[Phase, int] = {"head": 10, "body": 35, "idle": 75, "stream": 300, "rest": 5}
    for phase, seconds in limits.items():
        connections, clock, (a, b, _) = full()
        connections.enter(a, phase)
        clock.now += seconds
        connections.enter(b, phase)
        connections.sweep()
        assert a.told == [], "to the last moment"
        clock.now += 0.001
        connections.sweep()
        assert (a.told, b.told) == (["overdue"], [])


def test_being_answered_takes_as_long_as_it_takes() -> None:
    connections, clock, (a, *_) = full()
    connections.enter(a, "answer")
    clock.now += 1e6
    connections.sweep()
    assert a.told == []


def test_a_body_that_we_do_not_take_is_not_late() -> None:
    connections, clock, (a, *_) = full()
    connections.enter(a, "body")
    a.paused = True
    for _ in range(100):
        clock.now += 10
        connections.sweep()
    assert a.told == []


def untaken(connections: Connections, peer: Peer, size: int) -> None:
    peer.sent = size
    connections.left_untaken(peer)


def test_who_takes_nothing_of_his_answer_is_cut_off() -> None:
    connections, clock, peers = full()
    for peer, phase in zip(peers, PHASES, strict=True):
        connections.enter(peer, phase)
        untaken(connections, peer, 1000)
    clock.now += 30
    connections.sweep()
    assert [peer.told for peer in peers] == [[], [], []], "to the last moment"
    connections.taken(peers[1])
    clock.now += 0.001
    connections.sweep()
    assert [peer.told for peer in peers] == [["dropped"], [], ["dropped"]]


PHASES: tuple[Phase, ...] = ("answer", "stream", "idle")


def test_taking_an_answer_earns_time_by_what_is_taken() -> None:
    """A byte now and then is not enough; who takes 64 KiB a second may take as long as that needs, past the limit of
    idle ones."""
    connections, clock, (slow, steady, _) = full()
    for peer in (slow, steady):
        connections.enter(peer, "answer")
        untaken(connections, peer, 100 << 20)
    for _ in range(1000):
        clock.now += 1
        slow.sent -= 1 << 10
        steady.sent -= 64 << 10
        connections.sweep()
    assert set(slow.told) == {"dropped"}
    assert steady.told == []


def test_what_is_written_next_has_its_own_time() -> None:
    connections, clock, (a, *_) = full()
    connections.enter(a, "answer")
    for _ in range(10):
        untaken(connections, a, 1000)
        clock.now += 30
        connections.sweep()
        connections.taken(a)
        clock.now += 1000
        connections.sweep()
    assert a.told == []


def test_who_does_not_take_his_answer_makes_room() -> None:
    connections, _, peers = full()
    for peer in peers:
        connections.enter(peer, "answer")
    untaken(connections, peers[2], 1000)
    untaken(connections, peers[1], 1000)
    connections.taken(peers[2])
    d = Peer("d")
    assert connections.joined(d)
    assert [peer.told for peer in peers] == [[], ["dropped"], []]
    connections.enter(d, "answer")
    assert not connections.joined(Peer("e")), "whoever has taken it is being answered as before"


def test_answers_that_nobody_takes_have_a_bound_together() -> None:
    """The oldest go first, and one alone may be larger; who has taken his is not asked."""
    connections, _, (a, b, c) = full()
    for peer in (a, b, c):
        connections.enter(peer, "answer")
    untaken(connections, b, LIMITS.untaken + 1)
    assert b.told == []
    untaken(connections, a, 1)
    assert (a.told, b.told) == ([], ["dropped"])
    untaken(connections, c, LIMITS.untaken - 1)
    assert (a.told, c.told) == ([], []), "to the last byte"
    connections.taken(a)
    d = Peer("d")
    assert connections.joined(d)
    connections.enter(d, "answer")
    untaken(connections, d, 2)
    assert (a.told, c.told, d.told) == ([], ["dropped"], [])


def test_the_address_with_most_connections_makes_room() -> None:
    clock = Clock()
    connections = Connections(Limits(connections=5), clock)
    few, *many = (Peer("few", address="few"), *(Peer(name, address="many") for name in "abcd"))
    for peer in (few, *many):
        assert connections.joined(peer)
    assert connections.joined(Peer("new", address="few"))
    assert connections.joined(Peer("new", address="many"))
    assert (few.told, *(peer.told for peer in many)) == ([], ["dropped"], ["dropped"], [], [])
    for peer in many[2:]:
        connections.enter(peer, "answer")
    third = Peer("new", address="third")
    assert connections.joined(third)
    assert (third.told, *(peer.told for peer in many[2:])) == ([], [], []), "of those who are waited for"


def test_who_has_left_is_forgotten() -> None:
    connections, clock, (a, *_) = full()
    connections.left(a)
    connections.enter(a, "idle")
    clock.now += 1000
    connections.sweep()
    assert a.told == []
    assert connections.joined(Peer("d"))


def test_the_time_of_a_body_begins_where_we_read_again() -> None:
    connections, clock, (a, *_) = full()
    connections.enter(a, "body")
    a.paused = True
    clock.now += 100
    connections.sweep()
    a.paused = False
    clock.now += 35
    connections.sweep()
    assert a.told == []
    clock.now += 0.001
    connections.sweep()
    assert a.told == ["overdue"]
    late, later, (b, *_) = full()
    late.enter(b, "idle")
    b.paused = True
    later.now += 76
    late.sweep()
    assert b.told == ["overdue"], "of an idle one we read nothing"


class Loop:
    """An event loop whose time stands still, and what it is to do later."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> object:
        self.later.append((seconds, call))
        return object()

    def turn(self) -> None:
        ((seconds, call),) = self.later
        self.later.clear()
        self.now += seconds
        call()


def test_a_look_every_second_as_long_as_anybody_is_there(instead: Instead) -> None:
    loop = Loop()
    instead(module.asyncio, get_running_loop=lambda: loop)
    connections, a, b = Connections(LIMITS), Peer("a"), Peer("b")
    assert connections.joined(a)
    assert connections.joined(b)
    assert [seconds for seconds, _ in loop.later] == [1.0], "one look for all"
    for _ in range(10):
        loop.turn()
    assert a.told == b.told == []
    loop.turn()
    assert a.told == b.told == ["overdue"]
    connections.left(a)
    loop.turn()
    connections.left(b)
    loop.turn()
    assert loop.later == [], "nobody is there"
    assert connections.joined(a)
    assert len(loop.later) == 1

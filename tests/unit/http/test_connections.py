"""Who makes room, and whose time is up."""

from dataclasses import dataclass, field

from app.http.connections import Connections, Limits, Phase


@dataclass(eq=False)
class Peer:
    name: str
    phase: Phase = "head"
    since: float = 0.0
    sent: int = 0
    paused: bool = False
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


LIMITS = Limits(connections=3, head=10, body=30, idle=75, stream=300, answer=30)


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


def test_each_phase_has_its_limit_and_progress_begins_it_anew() -> None:
    for phase, seconds in (("head", 10), ("body", 35), ("idle", 75), ("stream", 300), ("rest", 5)):
        connections, clock, (a, b, _) = full()
        connections.enter(a, phase)
        clock.now += seconds
        connections.enter(b, phase)
        connections.sweep()
        assert a.told == []
        clock.now += 1
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


def test_who_takes_nothing_of_his_answer_is_cut_off() -> None:
    connections, clock, (a, b, _) = full()
    for peer in (a, b):
        connections.enter(peer, "answer")
        peer.sent = 1000
    for _ in range(4):
        clock.now += 10
        b.sent -= 1
        connections.sweep()
    assert (a.told, b.told) == ([], [])
    clock.now += 1
    b.sent -= 1
    connections.sweep()
    assert (a.told, b.told) == (["dropped"], [])


def test_who_has_left_is_forgotten() -> None:
    connections, clock, (a, *_) = full()
    connections.left(a)
    connections.enter(a, "idle")
    clock.now += 1000
    connections.sweep()
    assert a.told == []
    assert connections.joined(Peer("d"))

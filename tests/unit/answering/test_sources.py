from app.answering.sources import Compiled
from app.solver.model.configuration import Configuration, Flavor, Queue


def document(*queues: str, engine: str = "kueue") -> Configuration:
    return Configuration(engine="kueue", flavors=[Flavor(name=engine)], queues=[Queue(name=name) for name in queues])


def test_an_equal_configuration_is_compiled_once() -> None:
    sources = Compiled(None)
    first = sources.written(document("a", "b"), None)
    assert sources.written(document("a", "b"), None) is first
    assert sources.written(document("a", "c"), None) is not first
    assert sources.written(document("a", "b"), "kai").engine.name == "kai"
    assert sources.written(document("a", "b"), None) is first


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    sources = Compiled(None, most=2)
    first, _ = sources.written(document("a"), None), sources.written(document("b"), None)
    assert sources.written(document("a"), None) is first
    sources.written(document("c"), None)
    assert sources.written(document("a"), None) is first
    second = sources.written(document("b"), None)
    assert second.configuration == document("b")

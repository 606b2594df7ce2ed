from app.decisions.sources import Remembered
from app.solver.model.configuration import Configuration, Flavor, Queue


def document(*queues: str, engine: str = "kueue") -> Configuration:
    return Configuration(engine="kueue", flavors=[Flavor(name=engine)], queues=[Queue(name=name) for name in queues])


def test_an_equal_configuration_is_compiled_once() -> None:
    sources = Remembered()
    first = sources.compiled(document("a", "b"), None)
    assert sources.compiled(document("a", "b"), None) is first
    assert sources.compiled(document("a", "c"), None) is not first
    assert sources.compiled(document("a", "b"), "kai").engine.name == "kai"
    assert sources.compiled(document("a", "b"), None) is first


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    sources = Remembered(most=2)
    first, _ = sources.compiled(document("a"), None), sources.compiled(document("b"), None)
    assert sources.compiled(document("a"), None) is first
    sources.compiled(document("c"), None)
    assert sources.compiled(document("a"), None) is first
    second = sources.compiled(document("b"), None)
    assert second.configuration == document("b")

"""What tests of sources share with those beside them."""

import msgspec

from app.solver.model.configuration import Configuration, Flavor, Queue


def document(*queues: str, engine: str = "kueue") -> Configuration:
    return Configuration(engine="kueue", flavors=[Flavor(name=engine)], queues=[Queue(name=name) for name in queues])


class Documents:
    """Stored documents by name; counts how often each is read."""

    def __init__(self) -> None:
        self.read: list[tuple[str, int]] = []
        self.revision = 1

    def head(self, reference: str) -> tuple[str, int]:
        name, _, revision = reference.partition("@")
        return name, int(revision) if revision else self.revision

    def document(self, name: str, revision: int) -> bytes:
        self.read.append((name, revision))
        return msgspec.json.encode(document(f"{name}-{revision}"))

"""Translating what changed gives what translating everything does."""

import random
from typing import Any

from app.following.kinds import FOLLOWED
from app.following.mirror import Mirror
from app.following.reading import Event, Listed
from app.following.translating import translate
from app.following.translator import Translator
from app.formats.documents.reader import MOST_ALIKE
from tests.cluster import kueue

KINDS = {kind.name: kind for kind in FOLLOWED["kueue"]}


def test_any_sequence_of_changes_is_translated_as_if_all_were_read(monkeypatch: Any) -> None:
    choose, mirror, translator = random.Random(20261122), Mirror(FOLLOWED["kueue"]), Translator("kueue")
    begin: dict[str, list[dict[str, Any]]] = {
        "ClusterQueue": [kueue.cluster_queue("q", 100)], "LocalQueue": [kueue.local_queue("l", "q")],
        "ResourceFlavor": [kueue.flavor()], "Workload": [kueue.workload(f"w{i}", "l", 1) for i in range(60)],
    }  # fmt: skip
    for name, kind in KINDS.items():
        mirror.listed(kind, "kueue.x-k8s.io/v1beta1", Listed(begin.get(name, []), "1"), "test")
    read: list[int] = []
    compared = 0

    def counted(engine: Any, view: Any) -> Any:
        read.append(len(view.items["Workload"]))
        return translate(engine, view)

    monkeypatch.setattr("app.following.translator.translate", counted)
    for step in range(300):
        name = f"w{choose.randrange(80)}"
        admitted, queue = choose.choice([None, "q", "q", "q", "gone"]), choose.choice(["l"] * 9 + ["nowhere"])
        item = kueue.workload(name, queue, choose.randint(1, 9), choose.randint(0, 5), admitted=admitted)
        mirror.apply(KINDS["Workload"], Event(choose.random() < 0.3, item, str(step)))
        if step % 50 == 49:
            mirror.apply(KINDS["ClusterQueue"], Event(False, kueue.cluster_queue("q", step), str(step)))
        if choose.random() < 0.7:
            view = mirror.view()
            assert view is not None
            found, wanted = translator.translate(view), translate("kueue", view)
            for part in ("configuration", "nodes", "workloads", "asks", "local_queues", "classes"):
                assert getattr(found, part) == getattr(wanted, part), (step, part)
            if len(wanted.findings) < MOST_ALIKE:
                compared += 1
                assert sorted(map(str, found.findings)) == sorted(map(str, wanted.findings)), step
    assert compared > 50
    assert sum(amount < 20 for amount in read) > 100, "what did not change was read again"

"""The body of the answer, whole."""

from tests.support.yunikorn_world import World, queue


def test_every_queue_with_everything_that_holds_for_it() -> None:
    template = {"properties": {"preemption.policy": "fence"}}
    of = World(
        queues=[
            queue("root.p.b", preemption_delay="90s", priority_policy="fence", priority_offset="-3"), queue("root"),
            queue(
                "root.p", {"vcore": ("500m", 2), "memory": (None, "1Ki")}, preemption_policy="disabled",
                quota_preemption_delay="1500ms", child_template=template,
            ),
            queue("root.p.a", {"vcore": 0}, dynamic=True, priority_offset="9"), queue("root.empty", parent=True),
        ],
        nodes=[], workloads=[],
    )  # fmt: skip
    found = of.effective()
    plain = {
        "preemption.policy": "default", "preemption.delay": 30, "priority.policy": "default", "priority.offset": 0,
        "quota.preemption.delay": 0, "leaf": False, "guaranteed": {}, "limit": {}, "sources": {},
    }  # fmt: skip
    assert found == {
        "root": plain,
        "root.empty": plain,
        "root.p": plain | {
            "preemption.policy": "disabled", "quota.preemption.delay": 1.5, "guaranteed": {"vcore": 0.5},
            "limit": {"vcore": 2, "memory": 1024},
            "sources": {"preemption.policy": "root.p", "quota.preemption.delay": "root.p"},
        },
        "root.p.a": plain | {
            "preemption.policy": "fence", "leaf": True, "sources": {"preemption.policy": "child_template of root.p"}
        },
        "root.p.b": plain | {
            "preemption.policy": "disabled", "preemption.delay": 90, "priority.policy": "fence",
            "priority.offset": -3, "quota.preemption.delay": 1.5, "leaf": True,
            "sources": {
                "preemption.policy": "root.p", "preemption.delay": "root.p.b", "priority.policy": "root.p.b",
                "priority.offset": "root.p.b", "quota.preemption.delay": "root.p",
            },
        },
    }  # fmt: skip
    assert list(found) == sorted(found)
    whole, part = found["root"]["preemption.delay"], found["root.p"]["quota.preemption.delay"]
    assert (type(whole), type(part)) == (int, float), "whole seconds are integers"

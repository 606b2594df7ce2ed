"""Properties: Go durations, defaults, what passes down and what does not, and what an administrator is told."""

from typing import Any

import pytest

from app.solver.engines.yunikorn.configuration import parse
from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import World, app, grouped, node, queue, task


def tree(*queues: Any, rules: str = "documented") -> World:
    return World(queues=list(queues), nodes=[], workloads=[], rules=rules)


def test_the_delay_works_on_the_leaf_alone_unless_shipped() -> None:
    queues = (queue("root", preemption_delay="5s"), queue("root.p", preemption_delay="7s"), queue("root.p.leaf"))
    assert tree(*queues).effective()["root.p.leaf"]["preemption.delay"] == 30
    assert tree(*queues, rules="shipped").effective()["root.p.leaf"]["preemption.delay"] == 7


def test_disabled_passes_down_and_the_root_has_no_policy_unless_shipped() -> None:
    queues = (queue("root", preemption_policy="disabled"), queue("root.p"), queue("root.p.leaf"))
    assert tree(*queues).effective()["root.p.leaf"]["preemption.policy"] == "default"
    assert tree(*queues, rules="shipped").effective()["root.p.leaf"]["preemption.policy"] == "disabled"
    below = tree(queue("root"), queue("root.p", preemption_policy="Disabled"), queue("root.p.leaf")).effective()
    assert below["root.p.leaf"]["preemption.policy"] == "disabled"
    assert below["root.p.leaf"]["sources"] == {"preemption.policy": "root.p"}


def test_a_fence_stays_where_it_is() -> None:
    found = tree(queue("root"), queue("root.p", preemption_policy="fence"), queue("root.p.leaf")).effective()
    assert found["root.p.leaf"]["preemption.policy"] == "default"


def test_dynamic_leaves_take_the_template_only_and_dynamic_parents_only_pass_it_on() -> None:
    template = {"properties": {"preemption.delay": "4s", "priority.offset": "3"}}
    found = tree(
        queue("root"), queue("root.p", child_template=template, quota_preemption_delay="1h"),
        queue("root.p.made", dynamic=True), queue("root.p.made.leaf", dynamic=True), queue("root.p.own"),
    ).effective()  # fmt: skip
    made = found["root.p.made.leaf"]
    assert (made["preemption.delay"], made["priority.offset"], made["quota.preemption.delay"]) == (4, 3, 0)
    assert made["sources"]["preemption.delay"] == "child_template of root.p"
    parent = found["root.p.made"]
    assert (parent["preemption.delay"], parent["priority.offset"], parent["sources"]) == (30, 0, {})
    own = found["root.p.own"]
    assert (own["preemption.delay"], own["priority.offset"], own["quota.preemption.delay"]) == (30, 0, 3600)


@pytest.mark.parametrize(
    ("own", "offset"),
    [
        (None, 3), ({}, 3), ({"properties": {"priority.offset": ""}}, 3), ({"max_applications": 0}, 3),
        ({"max_applications": 1}, 0), ({"guaranteed": {"vcore": 0}}, 0), ({"max": {"vcore": 1}}, 0),
        ({"properties": {"preemption.delay": "4s"}}, 0),
    ],
)  # fmt: skip
def test_a_template_that_sets_anything_hides_the_one_above_it(own: dict[str, Any] | None, offset: int) -> None:
    below: dict[str, Any] = {} if own is None else {"child_template": own}
    found = tree(
        queue("root"), queue("root.p", child_template={"properties": {"priority.offset": "3"}}),
        queue("root.p.q", parent=True, **below), queue("root.p.q.made", dynamic=True),
    ).effective()  # fmt: skip
    assert found["root.p.q.made"]["priority.offset"] == offset


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_a_parent_has_the_delay_that_it_passes_on_for_its_leaves_alone(rules: str) -> None:
    of = tree(queue("root"), queue("root.p", preemption_delay="4s"), queue("root.p.leaf"))
    of.rules = rules
    found = of.effective()
    assert (found["root.p"]["preemption.delay"], found["root.p"]["sources"]) == (30, {})
    assert found["root.p.leaf"]["preemption.delay"] == (4 if rules == "shipped" else 30)


@pytest.mark.parametrize(
    ("properties", "rule", "field", "value"),
    [
        ({"preemption_delay": "soon"}, "property-value", "preemption.delay", 30),
        ({"preemption_delay": "0s"}, "property-value", "preemption.delay", 30),
        ({"preemption_delay": "-5s"}, "negative-delay", "preemption.delay", 30),
        ({"quota_preemption_delay": "-5s"}, "negative-delay", "quota.preemption.delay", 0),
        ({"preemption_policy": "fenced"}, "property-value", "preemption.policy", "default"),
        ({"priority_policy": "disabled"}, "property-value", "priority.policy", "default"),
        ({"priority_offset": "2147483648"}, "property-value", "priority.offset", 0),
        ({"priority_offset": "1_0"}, "property-value", "priority.offset", 0),
    ],
)
def test_a_bad_value_is_the_default_and_a_finding(
    properties: dict[str, Any], rule: str, field: str, value: object
) -> None:
    of = tree(queue("root"), queue("root.leaf", **properties))
    assert of.effective()["root.leaf"][field] == value
    assert [(f.rule, f.severity, f.pointer) for f in of.findings()] == [
        (rule, "warning", f"/queues/1/yunikorn/properties/{field}")
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-2147483648", -(2**31)), ("2147483647", 2**31 - 1), ("+7", 7), ("-2147483649", None), ("2147483648", None),
        ("0" * 127 + "1", 1), ("0" * 128 + "1", None), ("", None), ("1.0", None), (" 1", None), ("\uff11", None),
    ],
)  # fmt: skip
def test_an_offset_is_what_go_reads_as_32_bits(text: str, value: int | None) -> None:
    found = parse("priority.offset", text)
    assert (found.value, found.problem is None) == (value or 0, value is not None)


def test_findings_about_what_has_no_effect() -> None:
    of = tree(
        queue("root", preemption_policy="fence"),
        queue("root.p", preemption_delay="5s", preemption_sort="x", application_sort_policy="fifo"),
        queue("root.p.leaf", preemption_policy="fence"),
        queue("root.p.made", dynamic=True, preemption_delay="5s"),
    )
    assert {f.rule for f in of.findings()} == {
        "root-policy", "parent-delay", "unknown-property", "leaf-fence", "dynamic-properties",
    }  # fmt: skip


def test_findings_come_by_the_names_of_properties_and_the_template_after_the_queue() -> None:
    names = ("zeta", "preemption.delay", "alpha", "priority.offset")
    properties = dict.fromkeys(names, "odd")
    of = tree(queue("root"), {**queue("root.p"), "yunikorn": {"properties": properties, "child_template": {
        "properties": properties}}})  # fmt: skip
    found = of.findings()
    assert [f.pointer for f in found] == [
        f"/queues/1/yunikorn/{where}/{name}"
        for where in ("properties", "child_template/properties")
        for name in sorted(names)
    ]
    assert [f.rule for f in found] == ["unknown-property", "property-value", "property-value", "unknown-property"] * 2


@pytest.mark.parametrize(
    ("names", "pointers"),
    [
        (("a", "ab"), [1]), (("ab", "a"), [2]), (("a", "a.x"), []), (("a", "a.x", "ab"), [1]), (("a", "b", "ab"), [1]),
        (("a", "ab", "abc"), [1, 2]), (("b", "a"), []), (("a.x", "a", "a.xy"), [1]), (("A", "ab"), []),
    ],
)  # fmt: skip
def test_every_path_that_begins_like_another_of_a_branch_beside_it(names: tuple[str, ...], pointers: list[int]) -> None:
    """The one with the shorter path is named, once, if it has a guarantee."""
    queues = [queue("root"), *(queue(f"root.{name}", {"vcore": 2}) for name in names)]

    def found() -> list[str]:
        told = tree(*queues, rules="shipped").findings()
        return sorted(one.pointer for one in told if one.rule == "path-prefix")

    assert found() == [f"/queues/{i}/name" for i in pointers]
    for i in pointers:
        del queues[i]["quota"]
    assert found() == []


def test_the_first_path_that_begins_like_another_is_told() -> None:
    queues = [queue("root"), *(queue(f"root.{name}", {"vcore": 2}) for name in ("abd", "a", "a.x", "abc"))]
    (finding,) = tree(*queues, rules="shipped").findings()
    assert finding.detail == "'root.abc' begins like 'root.a': its asks may take this queue below its guarantee"


def test_a_path_that_begins_like_another_is_a_finding_of_the_released_rules() -> None:
    queues = (queue("root"), queue("root.a", {"vcore": 2}), queue("root.ab", {"vcore": 2}), queue("root.a.x"))
    assert [f.rule for f in tree(*queues, rules="shipped").findings()] == ["path-prefix"]
    assert tree(*queues).findings() == []


@pytest.mark.parametrize(
    ("queues", "pointer"),
    [
        ([], "/configuration/queues"),
        ([queue("top")], "/configuration/queues/0/parent"),
        ([queue("root"), {"name": "other"}], "/configuration/queues/1/parent"),
        (
            [queue("root"), queue("root.p", {"vcore": (None, 4)}), queue("root.p.a", {"vcore": 5})],
            "/configuration/queues/2/quota/vcore/guaranteed",
        ),
        (
            [queue("root"), queue("root.p", {"vcore": (None, 4)}), queue("root.p.a", {"vcore": (None, 5)})],
            "/configuration/queues/2/quota/vcore/limit",
        ),
        ([queue("root"), queue("root.a", {"vcore": (5, 4)})], "/configuration/queues/1/quota/vcore/guaranteed"),
        ([queue("root"), queue("root.a", {"vcore": "unlimited"})], "/configuration/queues/1/quota/vcore/guaranteed"),
        ([queue("root", {"vcore": 5}), queue("root.a")], "/configuration/queues/0/quota/vcore/guaranteed"),
        ([queue("root.a"), queue("root", {"vcore": (None, 0)})], "/configuration/queues/1/quota/vcore/limit"),
    ],
)
def test_a_tree_that_yunikorn_refuses(queues: list[Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tree(*queues).effective()
    assert [problem.pointer for problem in refused.value.problems] == [pointer]


@pytest.mark.parametrize(
    ("queues", "pointer"),
    [
        ([queue("root", {"vcore": 5}), queue("root.a")], "/configuration/queues/0/{}/vcore/guaranteed"),
        ([queue("root", {"vcore": (0, None)})], "/configuration/queues/0/{}/vcore/guaranteed"),
        ([queue("root", {"vcore": (None, 9)})], "/configuration/queues/0/{}/vcore/limit"),
        ([queue("root"), queue("root.a", {"vcore": (5, 4)})], "/configuration/queues/1/{}/vcore/guaranteed"),
        ([queue("root"), queue("root.a", {"memory": "unlimited"})], "/configuration/queues/1/{}/memory/guaranteed"),
        (
            [queue("root"), queue("root.p", {"vcore": (None, 4)}), queue("root.p.a", {"vcore": (None, 5)})],
            "/configuration/queues/2/{}/vcore/limit",
        ),
    ],
)
def test_pointers_lead_to_the_quota_in_either_form(queues: list[Any], pointer: str) -> None:
    for form, made in (("quota", queues), ("resource_groups/0/flavors/0/quota", [grouped(one) for one in queues])):
        with pytest.raises(InvalidInput) as refused:
            tree(*made).effective()
        assert [problem.pointer for problem in refused.value.problems] == [pointer.format(form)]


def test_the_root_may_say_that_it_has_no_limit() -> None:
    assert tree(queue("root", {"vcore": (None, "unlimited")})).effective()["root"]["limit"] == {}


def test_yunikorn_has_one_quota_a_resource() -> None:
    one = {"name": "one", "quota": {"vcore": {"guaranteed": 1}}}
    other = {"name": "other", "quota": {"vcore": {"guaranteed": 2}}}

    def refused(*groups: list[Any]) -> list[str]:
        made = [{"resources": ["vcore"], "flavors": flavors} for flavors in groups]
        with pytest.raises(InvalidInput) as found:
            tree(queue("root"), {"name": "root.a", "parent": "root", "resource_groups": made}).effective()
        return [problem.pointer for problem in found.value.problems]

    assert refused([one, other]) == ["/configuration/queues/1/resource_groups/0/flavors"]
    assert refused([one], [other]) == ["/configuration/queues/1/resource_groups/1/flavors/0/quota/vcore"]


def test_resource_groups_say_the_same_as_a_quota() -> None:
    queues = [queue("root"), queue("root.a", {"vcore": ("1500m", 4), "memory": (None, "1Gi")}), queue("root.b")]
    assert tree(*map(grouped, queues)).effective() == tree(*queues).effective()


@pytest.mark.parametrize(
    ("p", "a", "x", "problems"),
    [
        # (guaranteed, limit) of root.p, root.p.a and root.p.a.x.
        ((None, 9), (None, 5), (5, 5), []), ((None, 9), (None, None), (9, 9), []),
        ((None, 9), (None, 5), (6, None), ["a.x/guaranteed 6 is above the limit 5 of root.p.a"]),
        ((None, 9), (None, 5), (None, 6), ["a.x/limit 6 is above the limit 5 of root.p.a"]),
        ((None, 5), (None, 5), (6, None), ["a.x/guaranteed 6 is above the limit 5 of root.p"]),
        ((None, 9), (None, None), (10, None), ["a.x/guaranteed 10 is above the limit 9 of root.p"]),
        (
            (None, 5), (None, 9), (6, None),
            ["a/limit 9 is above the limit 5 of root.p", "a.x/guaranteed 6 is above the limit 5 of root.p"],
        ),
        ((None, 9), (6, 5), (None, None), ["a/guaranteed 6 is above the limit 5 of root.p.a"]),
    ],
)  # fmt: skip
def test_no_guarantee_and_no_limit_is_above_the_smallest_limit_on_the_path(
    p: Any, a: Any, x: Any, problems: list[str]
) -> None:
    named = {"a": "root.p.a", "a.x": "root.p.a.x"}
    queues = [
        queue("root"),
        *(queue(f"root.{name}", {"memory": of}) for name, of in (("p", p), ("p.a", a), ("p.a.x", x))),
    ]
    if not problems:
        assert tree(*queues).effective()
        return
    with pytest.raises(InvalidInput) as refused:
        tree(*queues).effective()
    index = {name: i for i, name in enumerate(one["name"] for one in queues)}
    expected: list[tuple[str, str]] = []
    for problem in problems:
        name, _, detail = problem.partition("/")
        field = detail.partition(" ")[0]
        expected.append((f"/configuration/queues/{index[named[name]]}/quota/memory/{field}", detail))
    assert [(one.pointer, one.detail) for one in refused.value.problems] == expected


def test_every_problem_of_a_tree_is_listed() -> None:
    with pytest.raises(InvalidInput) as refused:
        tree(
            queue("root"), queue("root.p", {"vcore": (None, 4), "memory": (None, 4)}),
            queue("root.p.a", {"vcore": (9, 8), "memory": 7}),
        ).effective()  # fmt: skip
    assert [problem.pointer.rpartition("/quota/")[2] for problem in refused.value.problems] == [
        "vcore/limit", "memory/guaranteed", "vcore/guaranteed",
    ]  # fmt: skip


def test_an_application_on_a_parent_queue_and_a_task_on_an_unknown_node() -> None:
    of = World(
        queues=[queue("root"), queue("root.p"), queue("root.p.leaf"), queue("root.empty", parent=True)],
        nodes=[node("n1", {"vcore": 4})],
        workloads=[app("on-parent", "root.p"), app("fine", "root.p.leaf"), app("on-empty", "root.empty")],
    )
    with pytest.raises(InvalidInput) as refused:
        of.decide()
    assert [p.pointer for p in refused.value.problems] == ["/state/workloads/0/queue", "/state/workloads/2/queue"]
    of.workloads = [app("a", "root.p.leaf", task("t", "nowhere", {"vcore": 1}))]
    with pytest.raises(InvalidInput) as refused:
        of.decide()
    assert [p.pointer for p in refused.value.problems] == ["/state/workloads/0/tasks/0/node"]

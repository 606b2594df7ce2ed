# pyright: reportPrivateUsage=false
"""What every exporter shares: what is said to be lost and where, the order of queues, numbers and text as YAML."""

from typing import Any

import msgspec
import pytest
import yaml

from app.base.documents import Path
from app.formats import exported
from app.formats.exported import (
    Field,
    Inside,
    Lost,
    Table,
    dump,
    flat_quota,
    number,
    parents_first,
    placed,
    renamed,
)
from app.formats.reader import Findings, Reader
from app.solver.model.configuration import Configuration, Queue, Quota

Json = dict[str, Any]


def queue(**fields: Any) -> Queue:
    return msgspec.convert(fields, Queue)


def told(lost: Lost) -> list[tuple[str, str, str, str]]:
    return [(one.severity, one.rule, one.pointer, one.detail) for one in lost.findings]


def words(lost: Lost) -> list[tuple[str, str]]:
    assert {(one.severity, one.rule) for one in lost.findings} <= {("warning", "not-carried")}
    return [(one.pointer, one.detail) for one in lost.findings]


def test_what_a_system_has_no_word_for_is_said_once_a_field() -> None:
    full = queue(name="a", weight=2, priority=3, created_at="2026-11-22T00:00:00Z")
    said = {
        "weight": ("/queues/0/weight", "X has no weight of a queue"),
        "priority": ("/queues/0/priority", "X has no priority of a queue"),
        "created": ("/queues/0/created_at", "X keeps no age of a queue here"),
    }
    for known in ("", "weight", "priority", "created", "weight priority created"):
        lost = Lost()
        lost.queue(("queues", 0), full, "X", **{name: name in known for name in said})
        assert words(lost) == [said[name] for name in said if name not in known]
    lost = Lost()
    lost.queue((), queue(name="a", priority=0), "X", weight=False, priority=False, created=False)
    assert lost.findings == []


def test_fields_of_a_quota_that_a_system_lacks() -> None:
    lost = Lost()
    lost.quota(("q",), Quota(limit=0, weight=1), "X", ("limit", "lending_limit", "weight"))
    assert words(lost) == [("/q/limit", "X has no limit of a quota"), ("/q/weight", "X has no weight of a quota")]
    lost = Lost()
    lost.quota((), Quota(borrowing_limit=1), "X", ("borrowing_limit",))
    assert words(lost) == [("/borrowing_limit", "X has no borrowing limit of a quota")]


NATIVE = {
    "kueue": {"a": 1, "metadata": {"m": 1, "n": 2}, "spec": 3}, "kai": {"spec": {"s": 1}}, "yunikorn": {"z": {"y": 1}},
}  # fmt: skip


def test_what_other_systems_alone_read_is_said() -> None:
    made = msgspec.convert(
        {
            "settings": {"kai": {}, "kueue": {"fair_sharing": True}},
            "native": NATIVE,
            "flavors": [{"name": "f"}, {"name": "g", "native": {"kai": {"x": 1}}}],
            "queues": [{"name": "a"}, {"name": "b", "kueue": {}, "yunikorn": {"parent": True},
                                       "native": {"ytsaurus": {"t": 1}, "kueue": {"u": 1}}}],
        },
        Configuration,
    )  # fmt: skip
    lost = Lost()
    lost.other_blocks(made, "kueue")
    assert words(lost) == [
        ("/queues/1/yunikorn", "settings of yunikorn mean nothing to kueue"),
        ("/settings/kai", "settings of kai mean nothing to kueue"),
        ("/native/yunikorn/z", "z of yunikorn means nothing to kueue"),
        ("/native/kai/spec/s", "s of kai means nothing to kueue"),
        ("/flavors/1/native/kai/x", "x of kai means nothing to kueue"),
        ("/queues/1/native/ytsaurus/t", "t of ytsaurus means nothing to kueue"),
    ]
    lost = Lost()
    lost.other_blocks(made, "ytsaurus")
    assert [at for at, _ in words(lost) if at.startswith("/native/kueue")] == [
        "/native/kueue/a", "/native/kueue/metadata/m", "/native/kueue/metadata/n", "/native/kueue/spec",
    ]  # fmt: skip


def test_what_was_kept_is_put_back_below_what_the_configuration_says() -> None:
    native = msgspec.convert({"native": {"kai": {"a": 1, "b": {"c": 2}}}, "name": "q"}, Queue).native
    lost = Lost()
    assert lost.native(("queues", 3), {"a": 5, "b": {"d": 6}}, native, "kai") == {"a": 5, "b": {"d": 6, "c": 2}}
    assert words(lost) == [
        ("/queues/3/native/kai/a", "the configuration says otherwise: its own value is written"),
    ]
    assert lost.native((), {"a": 5}, None, "kai") == {"a": 5}


CONFIG_MAP = {"key": "file.yaml", "metadata": {"name": "m"}}


@pytest.mark.parametrize(
    ("holder", "fits"),
    [
        (CONFIG_MAP, True), (CONFIG_MAP | {"data": {"other": "x"}}, True), (None, False), ("x", False), ({}, False),
        (CONFIG_MAP | {"key": 3}, False), (CONFIG_MAP | {"metadata": "m"}, False), (CONFIG_MAP | {"data": "x"}, False),
        ({"key": "file.yaml"}, False), ({"metadata": {}}, False),
    ],
)  # fmt: skip
def test_a_document_in_its_config_map(holder: Any, fits: bool) -> None:
    lost = Lost()
    made = lost.inside(holder, {"a": [1, "two"]}, ("native", "x"))
    if not fits:
        assert made == {"a": [1, "two"]}
        assert words(lost) == [("/native/x", "no ConfigMap: it has a key, metadata and data")]
        return
    text = "a:\n- 1\n- two\n"
    data = holder.get("data", {}) | {"file.yaml": text}
    assert made == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    assert lost.findings == []
    assert "  file.yaml: |\n    a:\n    - 1\n    - two\n" in dump([made], lost).text


def test_whole_objects_belong_to_a_system_by_their_group() -> None:
    objects: list[Json] = [
        {"apiVersion": "g/v1", "kind": "A"}, {"apiVersion": "h/v1", "kind": "B", "metadata": {"name": "n" * 101}},
        {"kind": "g"}, {"apiVersion": "other/g", "metadata": {"name": "n"}}, {"apiVersion": None, "metadata": "m"},
        {"apiVersion": "g"},
    ]  # fmt: skip
    made = msgspec.convert({"native": {"objects": objects}}, Configuration)
    lost = Lost()
    assert lost.objects(made, "x", ("g", "k")) == [objects[0], objects[5]]
    assert words(lost) == [
        ("/native/objects/1", f"B {'n' * 100} means nothing to x"), ("/native/objects/2", "g means nothing to x"),
        ("/native/objects/3", "an object n means nothing to x"), ("/native/objects/4", "an object means nothing to x"),
    ]  # fmt: skip
    assert Lost().objects(Configuration(), "x", ("g",)) == []


def test_parents_come_first_and_those_that_are_only_named_too() -> None:
    queues = [queue(name="c", parent="b"), queue(name="x", parent="lost"), queue(name="b", parent="a"),
              queue(name="a"), queue(name="d", parent="b"), queue(name="y", parent="lost")]  # fmt: skip
    assert [(at, one.name) for at, one in placed(queues)] == [
        *((("queues", i), one.name) for i, one in enumerate(queues)), (("queues",), "lost"),
    ]  # fmt: skip
    assert [one.name for _, one in parents_first(queues)] == ["a", "lost", "b", "x", "y", "c", "d"]
    assert {one.name: at for at, one in parents_first(queues)}["y"] == ("queues", 5)


def test_a_quota_without_flavors_is_that_of_the_first_one() -> None:
    groups = [
        {"resources": ["cpu"], "flavors": [{"name": "f", "quota": {"cpu": {"limit": 1}}},
                                           {"name": "g", "quota": {"cpu": {"limit": 2}}},
                                           {"name": "h", "quota": {"cpu": {"limit": 3}}}]},
        {"resources": ["memory"], "flavors": [{"name": "f", "quota": {"memory": {"limit": 4}}}]},
    ]  # fmt: skip
    lost = Lost()
    found = flat_quota(queue(name="a", resource_groups=groups), ("queues", 7), "X", lost)
    here = ("queues", 7, "resource_groups")
    assert found == {
        "cpu": ((*here, 0, "flavors", 0, "quota", "cpu"), Quota(limit=1)),
        "memory": ((*here, 1, "flavors", 0, "quota", "memory"), Quota(limit=4)),
    }
    assert words(lost) == [
        (f"/queues/7/resource_groups/0/flavors/{f}", "X has no flavors: only the first one's quota is kept")
        for f in (1, 2)
    ]
    assert flat_quota(queue(name="a", quota={"cpu": {"limit": 1}}), (), "X", lost) == {
        "cpu": (("quota", "cpu"), Quota(limit=1))
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.0, 2), (-3.0, -3), (0.5, 0.5), (2.0**53 - 1, 2**53 - 1), (2.0**53, 2.0**53), (-(2.0**53), -(2.0**53)), (0, 0)],
)
def test_whole_numbers_have_no_point(value: float, shown: float) -> None:
    assert (number(value), type(number(value))) == (shown, type(shown))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", False), ("yes", False), ("1", True), ("1.5", True), ("0x1f", True), ("true", True), ("null", True),
        ("~", True), ("", True), ("<<", True), (" a", True), ("a ", True), ("1h", False), ("-3", True),
    ],
)  # fmt: skip
def test_text_that_would_be_read_as_something_else_is_quoted(text: str, quoted: bool) -> None:
    said = dump([{"k": text}], Lost()).text
    assert said == f"---\nk: {text!r}\n" if quoted else f"---\nk: {text}\n"


def test_yaml_is_written_for_people() -> None:
    """In the order given, values repeated rather than pointed at, letters as they are, lines not broken."""
    shared = {"z": 1, "a": [1, 2]}
    text = dump([{"y": shared, "x": shared, "ü": "word " * 40 + "end"}, []], Lost()).text
    inner = "  z: 1\n  a:\n  - 1\n  - 2\n"
    assert text == f"---\ny:\n{inner}x:\n{inner}ü: {'word ' * 40}end\n--- []\n"
    assert next(iter(yaml.safe_load_all(text)))["y"] == shared


def test_what_was_lost_stands_above() -> None:
    lost = Lost()
    lost.add(("a", 0), "gone\n  for\tever")
    lost.note("hint", ("b",), "look\nhere")
    made = dump([1], lost)
    assert made.text.startswith("# not carried over: /a/0: gone for ever\n# look here\n---")
    assert told(lost) == [
        ("warning", "not-carried", "/a/0", "gone\n  for\tever"), ("info", "hint", "/b", "look\nhere"),
    ]  # fmt: skip
    assert made.findings is lost.findings
    assert exported._one_line(" a \n b ") == "a b"


@pytest.mark.parametrize(
    ("engine", "system", "given", "made", "said"),
    [
        ("kueue", "kueue", ["vcore", "user_slots"], ["vcore", "user_slots"], []),
        (None, "yunikorn", ["cpu", "memory"], ["vcore", "memory"], []), ("yunikorn", "kai", ["vcore"], ["cpu"], []),
        ("yunikorn", "ytsaurus", ["vcore", "memory"], ["cpu", "memory"], []),
        ("kueue", "kai", ["nvidia.com/gpu"], ["gpu"], []),
        ("kueue", "ytsaurus", ["amd.com/gpu"], ["gpu"],
         ["ytsaurus counts GPUs of every vendor: amd.com/gpu is written as gpu"]),
        ("kueue", "yunikorn", ["amd.com/gpu"], ["amd.com/gpu"], []),
        ("kai", "kueue", ["gpu"], ["nvidia.com/gpu"], ["a GPU of Kubernetes has a vendor: written as nvidia.com/gpu"]),
        ("kai", "yunikorn", ["gpu"], ["nvidia.com/gpu"],
         ["a GPU of Kubernetes has a vendor: written as nvidia.com/gpu"]),
        ("ytsaurus", "kai", ["gpu"], ["gpu"], []),
        ("ytsaurus", "kueue", ["user_slots", "network", "user_memory"], ["user_memory"],
         ["kueue has no resource user_slots: left out", "kueue has no resource network: left out"]),
        ("kueue", "ytsaurus", ["example.com/x", "user_slots", "gpu"], ["user_slots", "gpu"],
         ["ytsaurus has no resource example.com/x: left out"]),
        (None, "kai", ["cpu", "vcore"], ["cpu"], ["a second amount of cpu: vcore is left out"]),
    ],
)  # fmt: skip
def test_resources_have_the_names_of_the_system(
    engine: Any, system: Any, given: list[str], made: list[str], said: list[str]
) -> None:
    lost = Lost()
    found = renamed({name: (("at", name), i) for i, name in enumerate(given)}, engine, system, lost)
    assert list(found) == made
    assert [one.detail for one in lost.findings] == said
    places = {at for at, _ in found.values()}
    assert places <= {("at", name) for name in given}


class Inner(msgspec.Struct, frozen=True):
    most: int = 0


class Outer(msgspec.Struct, frozen=True):
    text: str = "usual"
    cap: int = 16
    inner: Inner | None = None
    several: list[Inner] = []
    deep: int = 0


def doubled(value: int, path: Path, lost: Lost) -> int | None:
    if value > 100:
        lost.add(path, "too much")
        return None
    return value * 2


INNER = Table(Inner(), (Field("maxItems", Reader.count, "most", doubled),))
OUTER = Table(Outer(cap=8), (
    Field("text", Reader.text), Inside("below", (Field("deep", Reader.integer),)),
    Field("theCap", Reader.count, "cap", always=True), INNER.block("inner"), INNER.listed("several"),
), first=("several", "theCap"))  # fmt: skip


def table_read(document: Json) -> tuple[Outer, list[str]]:
    findings = Findings()
    return OUTER.whole(Reader(document, ("at",), findings)), [finding.pointer for finding in findings.all()]


def test_a_table_reads_a_document_in_its_order_and_says_what_it_does_not_know() -> None:
    assert table_read({}) == (Outer(cap=8), [])
    document = {
        "zz": 1, "several": [{"maxItems": 1, "zz": 1}, {"maxItems": "x"}], "inner": {"maxItems": 5},
        "theCap": -1, "below": {"deep": 3, "zz": 1}, "text": 5,
    }  # fmt: skip
    read = Outer(cap=8, deep=3, inner=Inner(5), several=[Inner(1), Inner()])
    wrong = ["/at/text", "/at/theCap", "/at/several/0/zz", "/at/several/1/maxItems", "/at/below/zz", "/at/zz"]
    assert table_read(document) == (read, wrong)
    assert table_read({"inner": {"maxItems": 0}, "theCap": 1}) == (Outer(cap=1), [])  # servers fill in what is usual


def test_a_table_writes_what_is_not_usual_and_says_what_it_has_no_word_for() -> None:
    lost = Lost()
    assert OUTER.written(Outer(cap=8), (), lost) == {"theCap": 8}
    full = Outer(text="x", cap=16, inner=Inner(5), several=[Inner(101), Inner(1)], deep=4)
    written = OUTER.written(full, ("queues", 0), lost)
    assert written == {
        "several": [{}, {"maxItems": 2}], "theCap": 16, "text": "x", "below": {"deep": 4}, "inner": {"maxItems": 10},
    }  # fmt: skip
    assert list(written) == ["several", "theCap", "text", "below", "inner"]
    assert words(lost) == [("/queues/0/several/0/most", "too much")]
    assert OUTER.effects("spec.") == dict.fromkeys(
        ("spec.text", "spec.below", "spec.theCap", "spec.inner", "spec.several"), "decided"
    )


def test_what_a_table_reads_goes_over_what_is_known() -> None:
    reader = Reader({"theCap": 3, "zz": 1}, (), Findings())
    assert OUTER.read(reader, Outer(text="known")) == Outer(text="known", cap=3)
    assert not reader.findings.all()  # what else there is others may read

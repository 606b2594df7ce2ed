"""Kueue lets a Cohort and a ClusterQueue have one name; here they get two."""

from typing import Any

import pytest

from app.formats import export_configuration
from tests.support.kubernetes import read
from tests.support.kueue_names import made


@pytest.mark.parametrize(
    "taken",
    [[made("ClusterQueue", "a.cohort")], [made("Cohort", "a.cohort")], [made("ClusterQueue", "b", "a.cohort")]],
    ids=["by a ClusterQueue", "by a Cohort", "by a parent without an object"],
)
def test_a_new_name_is_nobodys(taken: list[dict[str, Any]]) -> None:
    found = read(made("Cohort", "a"), made("ClusterQueue", "a", "a"), *taken)
    parents = {queue.name: queue.parent for queue in found.configuration.queues}
    assert parents["a"] == "a.cohort.cohort"
    assert "a.cohort.cohort" in parents
    assert [f.rule for f in found.findings].count("renamed") == 2


def test_the_first_free_name_is_taken() -> None:
    found = read(made("Cohort", "a"), made("ClusterQueue", "a", "a"), made("Cohort", "c"))
    parents = {queue.name: queue.parent for queue in found.configuration.queues}
    assert parents["a"] == "a.cohort"
    assert "c" in parents


def test_a_document_that_is_exported_begins_where_it_begins() -> None:
    found = read(made("ClusterQueue", "a"))
    assert "---\n" in export_configuration(found.configuration, "kai")

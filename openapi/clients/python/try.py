"""Puts a configuration, decides, reads the log: with the installed Python client, which must be importable."""

import datetime
import os
from http import HTTPStatus

from arbiter_client import AuthenticatedClient
from arbiter_client.api.configurations import get_configuration, put_configuration
from arbiter_client.api.decision_log import get_decision, list_decisions
from arbiter_client.api.decisions import decide
from arbiter_client.models import (
    Ask,
    Configuration,
    ConfigurationWritten,
    DecisionAnswer,
    DecisionPage,
    DecisionRecord,
    DecisionRequest,
    ProblemDocument,
    Resources,
    StateOrReference,
    Task,
    Workload,
)

NAME = "try-python"
KUEUE = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
CONFIGURATION = Configuration.from_dict(
    {
        "engine": "kueue",
        "queues": [
            {"name": "all", "kueue": {"role": "cohort"}},
            {"name": "research", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}, "kueue": KUEUE},
            {"name": "serving", "parent": "all", "quota": {"cpu": {"guaranteed": "8000m"}}, "kueue": KUEUE},
        ],
    }
)
NOW = datetime.datetime(2026, 3, 2, 9, 30, tzinfo=datetime.UTC)


def task(name: str, cpu: float | str, count: int = 1) -> Task:
    return Task.from_dict({"name": name, "count": count, "requests": {"cpu": cpu}, "flavors": {"cpu": "default"}})


def question() -> DecisionRequest:
    running = Workload(
        id="sweep-17", queue="research", started_at=NOW - datetime.timedelta(hours=2), tasks=[task("trial", 10)]
    )
    ask = Ask(id="chat-api", queue="serving", priority=100, tasks=[task("replica", "3500m", 2)])
    return DecisionRequest(configuration=NAME, now=NOW, state=StateOrReference(workloads=[running]), asks=[ask])


def main() -> None:
    client = AuthenticatedClient(os.environ["ARBITER_URL"], os.environ["ARBITER_TOKEN"])
    written = put_configuration.sync_detailed(NAME, client=client, body=CONFIGURATION, if_none_match="*")
    assert written.status_code == HTTPStatus.CREATED, written.content
    assert isinstance(written.parsed, ConfigurationWritten)
    assert written.parsed.revision == 1

    answer = decide.sync(client=client, body=question())
    assert isinstance(answer, DecisionAnswer), answer
    (decision,) = answer.decisions
    (victim,) = decision.victims
    assert (decision.outcome, victim.workload) == ("preempt", "sweep-17")
    assert victim.freed["cpu"] == 10
    assert decision.conditions[0].last_transition_time == NOW

    page = list_decisions.sync(client=client, configuration=f"{NAME}@1")
    assert isinstance(page, DecisionPage), page
    assert [item.id for item in page.items] == [answer.id]
    record = get_decision.sync(answer.id, client=client)
    assert isinstance(record, DecisionRecord), record
    assert record.answer.decisions == answer.decisions

    unknown = get_configuration.sync("nobody", client=client)
    assert isinstance(unknown, ProblemDocument), unknown
    assert unknown.status == HTTPStatus.NOT_FOUND
    asked = question()
    asked.asks = [Ask(id="a", queue="nowhere", tasks=[Task(name="t", requests=Resources())])]
    refused = decide.sync(client=client, body=asked)
    assert isinstance(refused, ProblemDocument), refused
    assert [fault.pointer for fault in refused.errors or ()] == ["/asks/0/queue"]


if __name__ == "__main__":
    main()

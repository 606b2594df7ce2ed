"""``arbiter follow``: keep a configuration and a snapshot equal to a cluster, or judge a recording of one."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import yaml
from cyclopts import Parameter
from cyclopts.validators import Number

from app.cli.configuration import OURS, Remote
from app.cli.offline import Json
from app.cli.output import BAD_INPUT, DIFFERENT, NOTHING, UNREACHABLE, Fields, as_json, complain, fields_of, say, tried
from app.following.objects import FOLLOWED, WORK, manifests
from app.solver.model.configuration import EngineName
from app.solver.model.decision import label
from app.solver.model.problems import few

if TYPE_CHECKING:
    from app.following.follower import Follower
    from app.following.judging import Judgement
    from app.solver.model.configuration import Settings


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Source:
    """The cluster that is followed."""

    cluster: Annotated[str | None, Parameter(help="What the cluster is called; else as the snapshot.")] = None
    context: Annotated[str | None, Parameter(help="The context of the kubeconfig.")] = None
    kubeconfig: Annotated[
        str | None, Parameter(help="The file; else as kubectl finds it, or the account of the pod.")
    ] = None


Namespace = Annotated[
    str | None,
    Parameter(
        help="Where the system is installed, if not where it usually is: YuniKorn's ConfigMaps, the Deployment of "
        "KAI's scheduler, Kueue's ConfigMap.",
        show_default=False,
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Way:
    """How it is followed."""

    once: Annotated[bool, Parameter(negative=(), help="List and write once, and end.")] = False
    shadow: Annotated[bool, Parameter(negative=(), help="Compare each real preemption with Arbiter's.")] = False
    namespace: Namespace = None
    metrics_port: Annotated[
        int | None,
        Parameter(help="Serve Prometheus metrics of the follower at this port.", validator=Number(gte=0, lte=65535)),
    ] = None
    record: Annotated[
        Path | None,
        Parameter(help="Write down what the API server sends, appended to this file (.zst and .gz are compressed)."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Destination:
    """What is kept, and where."""

    snapshot: Annotated[str | None, Parameter(help="The snapshot to keep.")] = None
    configuration: Annotated[str | None, Parameter(help="The configuration to keep.")] = None
    remote: Remote = OURS


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recording in place of a cluster."""

    replay: Annotated[
        Path | None, Parameter(help="Judge each preemption of a recording, without a cluster and without a service.")
    ] = None
    simulation: Annotated[
        Path | None, Parameter(help="Write the recording as a simulation to this file, for `arbiter simulate`.")
    ] = None
    backtest: Annotated[
        Path | None,
        Parameter(
            help="Decide each preemption of the recording again, under the variants of this file: the body of "
            "POST /v1/backtests, JSON or YAML."
        ),
    ] = None
    fields: Fields = None
    json: Json = False


_NOWHERE, _HERE, _PLAIN, _LIVE = Destination(), Source(), Way(), Recorded()
if TYPE_CHECKING:
    Engine: TypeAlias = EngineName
else:
    Engine = Annotated[Literal[tuple(FOLLOWED)], Parameter(help="Whose objects.")]


def follow(
    engine: Engine,
    /,
    *,
    names: Destination = _NOWHERE,
    source: Source = _HERE,
    way: Way = _PLAIN,
    recorded: Recorded = _LIVE,
) -> int:
    """Follow a cluster: its queues become revisions of a configuration, what runs and what waits a snapshot.

    Only reads there, with the rights that `arbiter rights ENGINE` prints. Runs until it is stopped. With --replay each
    preemption of a recording is compared with Arbiter's, or with --backtest what Arbiter says under other
    configurations: exit code 0, or 1 where some differ.
    """
    if recorded.replay is not None:
        if recorded.simulation is not None:
            return _simulation(engine, recorded.replay, recorded.simulation)
        if recorded.backtest is not None:
            return _backtest(engine, recorded.replay, recorded.backtest, recorded)
        return _replay(engine, recorded.replay, recorded)
    snapshot, configuration = names.snapshot, names.configuration
    if snapshot is None or configuration is None:
        complain("--snapshot and --configuration say what to keep; or --replay FILE judges a recording")
        return BAD_INPUT
    try:
        from app.following.follower import Follower, Task, Tidy
        from app.following.keeping import Arbiter
        from app.following.objects import Broken
        from app.following.reading import Reader, connect
        from app.following.replaying import Recorder
    except ModuleNotFoundError as missing:
        complain(f"following a cluster needs the extra arbiter-preemption[kubernetes]: no module {missing.name}")
        return BAD_INPUT

    try:
        client = connect(source.context, source.kubeconfig)
        recorder = None if way.record is None else Recorder(way.record, engine, source.cluster or snapshot)
    except Broken as error:
        complain(str(error))
        return UNREACHABLE
    except OSError as error:
        complain(f"no recording: {error}")
        return BAD_INPUT
    task = Task(
        engine=engine,
        cluster=source.cluster or snapshot,
        snapshot=snapshot,
        configuration=configuration,
        shadow=way.shadow,
        namespace=way.namespace,
    )
    service = names.remote.service
    follower = Follower(task, Reader(client, recorder), Arbiter(service.address, service.token), Tidy())
    try:
        return _run(follower, task.cluster, way)
    finally:
        if recorder is not None:
            recorder.close()


def _run(follower: "Follower", cluster: str, way: Way) -> int:
    """Until a signal, or once."""
    from app.following.follower import end_with_signals, serve

    end_with_signals(follower)
    if way.metrics_port is not None:
        try:
            serve(cluster, follower.pulse, way.metrics_port)
        except OSError as error:
            complain(f"no metrics at port {way.metrics_port}: {error.strerror or error}")
            return BAD_INPUT
    if (why := follower.run(once=way.once)) is not None:
        complain(why)
        return UNREACHABLE
    return NOTHING


def _replay(engine: Engine, path: Path, recorded: Recorded) -> int:
    from app.following.replaying import Replay, lines

    def act() -> int:
        replay, outcomes = Replay(engine), Counter[str]()
        for judged in replay.judge(lambda: lines(path), _settings(engine, recorded)):
            outcomes[judged.outcome] += 1
            outcomes["tied"] += judged.tied
            _tell(judged, json=recorded.json)
        agreed = outcomes["agreed"] + outcomes["agreed_earlier"]
        compared = agreed + outcomes["differs"]
        summary = f"{agreed} of {compared} agree" + (f" ({100 * agreed / compared:.2f} %)" if compared else "")
        summary += f", {outcomes['agreed_earlier']} of them a moment earlier; {outcomes['unjudged']} not judged"
        if outcomes["tied"]:
            summary += f"; {outcomes['tied']} differ where the scheduler chooses by chance"
        if skipped := sum(replay.counts.skipped.values()):
            kinds = ", ".join(sorted(replay.counts.skipped)[:10])
            complain(f"{skipped} objects of other kinds are not read: {kinds}")
        complain(summary) if recorded.json else say(summary)
        return DIFFERENT if outcomes["differs"] else NOTHING

    return tried(str(path), act)


def _settings(engine: Engine, recorded: Recorded) -> "Settings | None":
    """With which the recorded cluster ran, as far as somebody says. Raises InvalidInput."""
    from app.answering.overrides import with_fields
    from app.solver.model.configuration import Configuration

    given = fields_of(recorded.fields) if recorded.fields else None
    return None if given is None else with_fields(Configuration(engine=engine), given).settings


def _backtest(engine: Engine, path: Path, body: Path, recorded: Recorded) -> int:
    import msgspec

    from app.answering.sources import Compiled, Sources
    from app.base.decoding import decode
    from app.following.replaying import judgements
    from app.studies.backtesting import BacktestRequest, BacktestTallies, DecisionDiffers, decide_again, refuse

    def act() -> int:
        asked = decode(as_json(body.read_bytes()), BacktestRequest)
        refuse(asked, recording=True)

        def write(number: int, line: DecisionDiffers) -> None:
            name = asked.variants[number].name
            if recorded.json:
                say(msgspec.json.encode({"variant": name, **msgspec.to_builtins(line)}).decode())
                return
            how = [
                f"{difference.ask or 'the plan'}, {difference.field}: {difference.values}"
                for difference in line.differences
            ]
            how += [f"refused: {problem.pointer}: {problem.detail}" for problem in line.problems]
            say(f"{line.created_at.isoformat()} {line.ask} under {name}: {'; '.join(how[:5])}")

        cycles = judgements(path, engine, _settings(engine, recorded) or asked.settings)
        course = BacktestTallies(asked, write)
        decide_again(asked, cycles, course, Sources(Compiled(None)))
        outcome = course.outcome()
        if recorded.json:
            say(msgspec.json.encode(outcome).decode())
        for variant in () if recorded.json else outcome.variants:
            say(
                f"{variant.name}: {variant.same} as they were, {variant.differ} otherwise, {variant.refused} refused;"
                f" {variant.logged.evictions} evictions were made, {variant.here.evictions} would be"
            )
        if outcome.skipped:
            complain(
                f"{outcome.skipped} of {outcome.decisions} are skipped, the first: {outcome.first_skipped[0].reason}"
            )
        return DIFFERENT if any(variant.differ or variant.refused for variant in outcome.variants) else NOTHING

    return tried(str(path), act)


def _simulation(engine: Engine, path: Path, out: Path) -> int:
    import msgspec

    from app.following.simulating import simulated

    def act() -> int:
        request, left_out = simulated(engine, path)
        out.write_bytes(msgspec.json.encode(request) + b"\n")
        changes = request["trace"]["changes"]
        amended = sum("nodes" not in change for change in changes)
        say(
            f"{out}: {len(request['trace']['jobs'])} jobs, {amended} changes of the configuration"
            f" and {len(changes) - amended} of nodes"
        )
        complain_left_out(engine, left_out)
        return NOTHING

    return tried(str(path), act)


def complain_left_out(engine: EngineName, left_out: Counter[str]) -> None:
    """Say which work of a recording is no job of its simulation."""
    kind = WORK[engine][0]
    for why, count in sorted(left_out.items()):
        complain(f"{count} {kind}s {why}")


def _tell(judged: "Judgement", *, json: bool) -> None:
    import msgspec

    report = judged.report
    if json:
        fields = {"outcome": judged.outcome, "detail": judged.detail, "tied": judged.tied, "report": report}
        say(msgspec.json.encode(fields).decode())
        return
    victims = few([label(v.workload, v.task) for v in report.victims], 10)
    words = {"agreed": "agreed", "agreed_earlier": f"agreed {report.seconds:g} s earlier", "differs": "DIFFERS"}
    said = words.get(judged.outcome, "not judged") + (", a tie" if judged.tied else "")
    assumed = f" [{', '.join(report.assumed)}]" if report.assumed else ""
    detail = f": {judged.detail}" if judged.detail else ""
    say(f"{report.seen_at.isoformat()} {report.ask} evicts {victims}: {said}{assumed}{detail}")


def rights(
    engine: Engine,
    /,
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Of the account.")] = "default",
    account: Annotated[str, Parameter(help="The name of the account.")] = "arbiter-follower",
    shadow: Annotated[bool, Parameter(negative=(), help="Also what `arbiter follow --shadow` reads.")] = False,
    within: Annotated[
        str | None,
        Parameter(
            name=["--system-namespace", "--yunikorn-namespace"],
            help="Where the system is installed, if not where it usually is.",
        ),
    ] = None,
) -> int:
    """Print the rights that following needs, as a manifest for `kubectl apply -f -`: an account and its roles."""
    say(
        yaml.safe_dump_all(
            manifests(engine, namespace, account, shadow=shadow, within=within), sort_keys=False
        ).rstrip()
    )
    return NOTHING

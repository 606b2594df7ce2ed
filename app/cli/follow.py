"""``arbiter follow``: keep a configuration and a snapshot equal to a cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import yaml
from cyclopts import Parameter
from cyclopts.validators import Number

from app.cli.configuration import DEFAULT_URL, Token, Url
from app.cli.output import BAD_INPUT, NOTHING, UNREACHABLE, complain, say
from app.following.kinds import manifests

if TYPE_CHECKING:
    from app.following.follower import Follower


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
    str | None, Parameter(help="Where YuniKorn is installed, and so its ConfigMaps [yunikorn].", show_default=False)
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


_HERE, _PLAIN = Source(), Way()
Engine = Annotated[Literal["kueue", "kai", "yunikorn"], Parameter(help="Whose objects.")]


def follow(
    engine: Engine,
    /,
    *,
    snapshot: Annotated[str, Parameter(help="The snapshot to keep.")],
    configuration: Annotated[str, Parameter(help="The configuration to keep.")],
    source: Source = _HERE,
    way: Way = _PLAIN,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> int:
    """Follow a cluster: its queues become revisions of a configuration, what runs and what waits a snapshot.

    Only reads there, with the rights that `arbiter rights ENGINE` prints. Runs until it is stopped.
    """
    try:
        from app.following.follower import Follower, Task, Tidy
        from app.following.keeping import Arbiter
        from app.following.reading import Broken, Reader, connect
    except ModuleNotFoundError as missing:
        complain(f"following a cluster needs the extra arbiter-preemption[kubernetes]: no module {missing.name}")
        return BAD_INPUT
    from app.base.settings import own_address  # with pydantic, which `decide` can do without

    try:
        reader = Reader(connect(source.context, source.kubeconfig))
    except Broken as error:
        complain(str(error))
        return UNREACHABLE
    task = Task(
        engine=engine,
        cluster=source.cluster or snapshot,
        snapshot=snapshot,
        configuration=configuration,
        shadow=way.shadow,
        namespace=way.namespace,
    )
    follower = Follower(task, reader, Arbiter(url or own_address(), token), Tidy())
    return _run(follower, task.cluster, way)


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
    follower.run(once=way.once)
    return NOTHING


def rights(
    engine: Engine,
    /,
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Of the account.")] = "default",
    account: Annotated[str, Parameter(help="The name of the account.")] = "arbiter-follower",
    shadow: Annotated[bool, Parameter(negative=(), help="Also what `arbiter follow --shadow` reads.")] = False,
    within: Annotated[
        str | None, Parameter(name="--yunikorn-namespace", help="Where YuniKorn is installed [yunikorn].")
    ] = None,
) -> int:
    """Print the rights that following needs, as a manifest for `kubectl apply -f -`: an account and its roles."""
    say(
        yaml.safe_dump_all(
            manifests(engine, namespace, account, shadow=shadow, within=within), sort_keys=False
        ).rstrip()
    )
    return NOTHING

"""Prometheus metrics: what Arbiter counts about its own decisions."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.configurations.heads.table import Heads

_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One set of metrics with a registry of its own, so that two services in one process don't share counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("arbiter_requests", "Requests answered.", ["status"], registry=self.registry)
        self.refusals = Counter(
            "arbiter_refusals", "Requests refused: unauthenticated, or forbidden to their token.",
            ["kind"], registry=self.registry,
        )  # fmt: skip
        self.decisions = Counter(
            "arbiter_decisions", "Asks answered; reason is that of the ask's first condition.",
            ["engine", "outcome", "reason"], registry=self.registry,
        )  # fmt: skip
        self.victims = Counter(
            "arbiter_victims", "Evictions that answers planned.", ["engine", "reason"], registry=self.registry
        )
        self.stages = {
            "decode": self._latency("decode", "Reading and validating a decision's body."),
            "compile": self._latency("compile", "Compiling its configuration and state."),
            "solve": self._latency("solve", "Deciding, and verifying the answer."),
            "encode": self._latency("encode", "Writing the answer."),
        }
        self.log_written = Counter("arbiter_decision_log_written", "Log entries stored.", registry=self.registry)
        self.log_dropped = Counter(
            "arbiter_decision_log_dropped", "Log entries lost: queue_full, refused by the database, or shutdown.",
            ["cause"], registry=self.registry,
        )  # fmt: skip
        self.log_waiting = Gauge(
            "arbiter_decision_log_waiting", "Log entries that wait to be stored.", registry=self.registry
        )

    def follow(self, heads: Heads, stale_seconds: float) -> None:
        """Show how well the database's configurations are followed."""
        stale = Gauge(
            "arbiter_configurations_stale", "1 while names mean what they last meant: the database can't be followed.",
            registry=self.registry,
        )  # fmt: skip
        stale.set_function(lambda: float(heads.is_stale(stale_seconds)))
        age = Gauge(
            "arbiter_configurations_age_seconds", "Since names were last known to mean what the database says.",
            registry=self.registry,
        )  # fmt: skip
        age.set_function(lambda: heads.age)
        known = Gauge("arbiter_configurations_known", "Configurations known by name.", registry=self.registry)
        known.set_function(lambda: float(len(heads)))

    def _latency(self, stage: str, what: str) -> Histogram:
        return Histogram(
            f"arbiter_decision_{stage}_seconds", what, ["engine"], buckets=_LATENCY, registry=self.registry
        )

    def decided(
        self, engine: str, outcomes: list[str], reasons: list[str], victims: dict[str, int], seconds: dict[str, float]
    ) -> None:
        """Count one answered decision request. ``victims``: evictions by reason; ``seconds``: by stage."""
        for outcome, reason in zip(outcomes, reasons, strict=True):
            self.decisions.labels(engine, outcome, reason).inc()
        for reason, count in victims.items():
            self.victims.labels(engine, reason).inc(count)
        for stage, spent in seconds.items():
            self.stages[stage].labels(engine).observe(spent)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

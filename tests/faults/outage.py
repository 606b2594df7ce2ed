"""A database that can be taken away."""

import psycopg
from psycopg import sql
from sqlalchemy import make_url


class Outage:
    """Takes one database of the server away and gives it back; other databases don't notice."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)

    def _run(self, statement: str) -> None:
        name = sql.Identifier(str(self._url.database))
        literal = sql.Literal(str(self._url.database))
        with psycopg.connect(
            host=str(self._url.query["host"]), user=self._url.username, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(sql.SQL(statement).format(name=name, literal=literal))  # pyright: ignore[reportArgumentType]

    def begin(self) -> None:
        self._run("alter database {name} with allow_connections false")
        self._run("select pg_terminate_backend(pid) from pg_stat_activity where datname = {literal}")

    def end(self) -> None:
        self._run("alter database {name} with allow_connections true")

"""Options of the commands that run on Spark, and the session they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ordercast.cli.common import BadValue, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])


class Setting(click.ParamType):
    """KEY=VALUE of a Spark configuration."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip() or key != key.strip():
            raise BadValue(f"{value}: expected KEY=VALUE, such as spark.executor.memory=2g", ctx, param)
        return key, text


def spark_options(command: Command) -> Command:
    """--master and --conf."""
    command = click.option(
        "--conf", "conf", type=Setting(), multiple=True, help="A Spark setting, KEY=VALUE; may be given again."
    )(command)
    return click.option(
        "--master", default=None, help="Where Spark runs: local[N] (default: all cores here), spark://…, sc://…, yarn."
    )(command)


def open_session(
    master: str | None, conf: tuple[tuple[str, str], ...], shown: Progress, *, small: bool = False
) -> SparkSession:
    """The session, with a word on stderr while it starts.

    `small`: few rows will pass through Spark itself, so compiling its plans would cost more than running them.
    """
    from ordercast.pipeline.session import session

    shown.say("starting Spark ...")
    settings = {"spark.sql.codegen.wholeStage": "false"} if small else {}
    return session(master, settings | dict(conf))

"""Options of the commands that run on Spark, and the session they ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from ordercast.cli.common import BadValue, Progress, Whole, force_option, json_option
from ordercast.errors import UsageError

if TYPE_CHECKING:
    from ordercast.pipeline.session import SparkSession

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
        "--conf",
        "conf",
        type=Setting(),
        multiple=True,
        is_eager=True,
        help="A Spark setting, KEY=VALUE; may be given again.",
    )(command)
    return click.option(
        "--master",
        default=None,
        is_eager=True,
        help="Where Spark runs: local[N] (default: all cores here), spark://…, sc://…, yarn.",
    )(command)


class Reading(Struct):
    """What a command that reads traces was told: which, how, and by what."""

    paths: tuple[Path, ...]
    plain: bool
    skip_bad: bool
    tasks: int | None
    force: bool
    master: str | None
    conf: tuple[tuple[str, str], ...]

    @property
    def engine(self) -> str:
        return "plain" if self.plain else "spark"

    def session(self, shown: Progress, small: bool) -> SparkSession:
        return open_session(self.master, self.conf, shown, small=small)


def trace_options(command: Callable[..., int]) -> Callable[..., int]:
    """PATH..., and what all commands that read traces have in common: their first argument, a Reading."""

    @wraps(command)
    def called(**given: Any) -> int:
        return command(Reading(*(given.pop(name) for name in Reading.__struct_fields__)), **given)

    several = "Go on with the rest when a file cannot be read, and count what was left out."
    for option in (
        json_option,
        spark_options,
        force_option,
        click.option("--tasks", type=Whole(1, 100_000), default=None, help="Into how many tasks the files are cut."),
        click.option("--skip-bad", is_flag=True, help=several),
        click.option("--plain", is_flag=True, callback=alone, help="In this process, without Spark."),
        click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."),
    ):
        called = option(called)
    return called


def alone(ctx: click.Context, param: click.Parameter, plain: bool) -> bool:
    """Called after --master and --conf, which are eager, are known."""
    if plain and (ctx.params.get("master") or ctx.params.get("conf")):
        raise UsageError("--plain runs without Spark: it excludes --master and --conf")
    return plain


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

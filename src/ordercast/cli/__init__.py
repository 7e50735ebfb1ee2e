"""The command line: a group of commands whose modules are imported only when asked for.

Each module ``ordercast.cli.NAME`` holds one click command named ``command``.  Adding a command = one module and one
line in COMMANDS.  Exit codes: 0 ok, 1 a promise was broken or the run failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from ordercast.cli.common import interruptible, nothing_half_printed, say_error, tame_streams
from ordercast.errors import ConfigError, OrdercastError, UsageError
from ordercast.version import __version__
from ordercast.words import near

# name -> one line for `--help`, so that listing the commands imports none of them
COMMANDS: dict[str, str] = {
    "run": "Start a group of real processes here, send a workload, verify the run.",
    "init": "Write group.toml and a key for a first group.",
    "member": "Be one member of a group, as its configuration says.",
    "tagger": "Number datagrams for groups whose protocol needs one order of them.",
    "status": "Say what each member of a running group does and waits for.",
    "views": "Print the history of a group's views: when, who, why.",
    "keygen": "Make a new key for a group.",
    "key": "Give a running group another key: add, use, drop.",
    "simulate": "Run a group in virtual time, from a seed.",
    "verify": "Judge recorded runs against the promises.",
    "replay": "Replay recorded members or golden vectors and compare.",
    "bench": "Measure throughput and latency of a protocol on this machine.",
    "sweep": "Simulate a grid of scenarios.",
    "compare": "Put protocols side by side under one simulated workload.",
    "papers": "Run the tables and figures of the papers again, beside what was published.",
    "measure": "Compute latency and throughput tables from traces.",
    "report": "Make one HTML file of a run.",
    "swarm": "Search for broken promises with random faults.",
    "protocols": "List the protocols and what they promise.",
    "doctor": "Check what this machine needs, and how to fix what is missing.",
}


class LazyGroup(click.Group):
    """Knows its commands by name; imports one when it is called or its help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"ordercast.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            raise UsageError(f"unknown command {near(name, self.list_commands(ctx))} (`ordercast --help` lists them)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Every command has --help and --json. Start with `ordercast run` or `ordercast doctor`.",
)
@click.version_option(__version__, prog_name="ordercast", message="%(prog)s %(version)s")
def group() -> None:
    """Several processes see the same events in the same order."""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.  Whatever a person got wrong becomes one sentence on stderr."""
    tame_streams()
    if "_ORDERCAST_COMPLETE" in os.environ:
        group.main(prog_name="ordercast")  # shell completion; does not return
    try:
        code = _invoke(list(sys.argv[1:] if args is None else args))
    except KeyboardInterrupt:
        code = 130
    return nothing_half_printed(code)


def _invoke(args: list[str]) -> int:
    context: click.Context | None = None
    try:
        with group.make_context("ordercast", args) as context:
            with interruptible():
                result: Any = group.invoke(context)
            return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        return 130
    except KeyboardInterrupt as stop:
        say_error(_of(context, str(stop) or "interrupted"))
        return 130
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message(), err=True)
        return 2
    except (click.ClickException, OrdercastError, OSError) as error:
        if (
            isinstance(error, OSError)
            and not error.strerror
            and not isinstance(error, BrokenPipeError | OrdercastError)
        ):
            raise
        for sentence in _sentences(error):
            say_error(_of(context, sentence))
        return 2 if isinstance(error, click.ClickException | UsageError) else 1


def _of(context: click.Context | None, sentence: str) -> str:
    """The sentence, and which command says it."""
    command = context.invoked_subcommand if context is not None else None
    return f"{command}: {sentence.removeprefix(f'{command}: ')}" if command else sentence


def _sentences(error: Exception) -> list[str]:
    """What a command failed with, a sentence for each fault."""
    if isinstance(error, click.ClickException):
        return [_sentence(error)]
    if isinstance(error, ConfigError):
        return error.faults
    if isinstance(error, BrokenPipeError):
        return ["standard output was closed before everything was written"]
    if isinstance(error, OSError) and not isinstance(error, OrdercastError):
        return [f"{error.filename or 'writing failed'}: {error.strerror}"]
    return [str(error)]


def _sentence(fault: click.ClickException) -> str:
    """Click's own complaints in our form: where, what, what was expected."""
    context: click.Context | None = getattr(fault, "ctx", None)
    if isinstance(fault, click.NoSuchOption):
        known = [name for p in context.command.params for name in p.opts] if context else []
        return f"unknown option {near(fault.option_name, [*known, '--help'], ignore='-')}"
    if isinstance(fault, click.MissingParameter) and fault.param is not None:
        kind = "option" if isinstance(fault.param, click.Option) else "argument"
        return f"missing {kind} {_hint(fault.param)}"
    if isinstance(fault, click.BadParameter) and fault.param is not None:
        if getattr(fault, "begins_with_value", False):
            return f"{_hint(fault.param)} {fault.message}"
        return f"{_hint(fault.param)}: {_plain(fault.message)}"
    return _plain(fault.format_message())


def _hint(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.metavar or (param.name or "").upper()


def _plain(message: str) -> str:
    message = " ".join(message.split()).rstrip(".")
    return message[:1].lower() + message[1:] if message[1:2].islower() else message

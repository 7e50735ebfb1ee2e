"""What all commands share: option types whose errors are one sentence, --json, progress, output directories."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from ordercast.errors import UsageError, by_interrupt
from ordercast.limits import MEMBERS_MAX, MESSAGE_BYTES_MAX
from ordercast.words import bounds, near, short

if TYPE_CHECKING:
    from ordercast.config import GroupConfig

JSON_VERSION = 1
MARK = ".ordercast"  # in every output directory we made; only such a directory is replaced by --force

# ---------------------------------------------------------------------------------------------------------- streams


def tame_streams() -> None:
    """Make the three standard streams usable whatever the caller did: closed, or without UTF-8."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # else the next socket or file would become standard input or output
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and not _is_utf8(stream):
            stream.reconfigure(errors="backslashreplace")


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def nothing_half_printed(code: int) -> int:
    """Flush standard output; what cannot be written (reader gone, disk full) is a failed run, without a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.close(quiet)
        if code == 0:
            why = "its reader has gone" if isinstance(error, BrokenPipeError) else error.strerror
            say_error(f"standard output could not be written: {why}")
            code = 1
    return code


def say_error(sentence: str) -> None:
    try:
        print(f"ordercast: {sentence}", file=sys.stderr, flush=True)
    except OSError:
        return  # nobody is left to tell; the exit code still says it


# ---------------------------------------------------------------------------------------------------- option types


class BadValue(click.BadParameter):
    """A value that cannot be used; its message begins with the value."""

    begins_with_value = True


class Whole(click.ParamType):
    """A whole number within bounds."""

    name = "integer"

    def __init__(self, low: int = 0, high: int | None = None) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 40:
            number = int(text)
            if number >= self.low and (self.high is None or number <= self.high):
                return number
        raise BadValue(f"{short(value)}: expected a whole number{bounds(self.low, self.high)}", ctx, param)


class Number(click.ParamType):
    """A decimal number within bounds; one that must be above 0 is at least a millionth."""

    name = "number"

    def __init__(self, low: float = 0.0, high: float = 1e9, *, above: bool = False) -> None:
        self.low, self.high = max(low, 1e-6) if above else low, high
        self.range = bounds(None if above else low, high, low if above else None)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value) if str(value).isascii() else math.nan
        except ValueError:
            number = math.nan
        if self.low <= number <= self.high and (number == 0 or number >= 1e-6):
            return number
        raise BadValue(f"{short(value)}: expected a number{self.range}", ctx, param)


class Seed(click.ParamType):
    """A seed: an unsigned 64-bit integer."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64:
            return int(text)
        raise BadValue(f"{short(value)}: expected a whole number from 0 to 2^64-1", ctx, param)


SEEDS_MAX = 10**12


class Seeds(click.ParamType):
    """A:B, from A up to but not including B; or one seed."""

    name = "a:b"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        if isinstance(value, range):
            return value
        first, colon, last = str(value).strip().partition(":")
        last = last if colon else first
        if not all(end.isascii() and end.isdigit() and int(end[:14]) <= SEEDS_MAX for end in (first, last)):
            raise BadValue(f"{short(value)}: expected A:B with whole numbers from 0, such as 0:500", ctx, param)
        a, b = int(first), int(last) + (0 if colon else 1)
        if b <= a:
            raise BadValue(f"{short(value)}: expected A:B with A below B (B itself is not run)", ctx, param)
        return range(a, b)


class Protocol(click.ParamType):
    """A name of the registry; asked for late, so that `--help` imports no protocol."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from ordercast import registry

        known = registry.names()
        if not registry.known(str(value)):
            raise BadValue(f"{near(str(value), known)} (known: {', '.join(known)})", ctx, param)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from ordercast import registry

        return [CompletionItem(name) for name in registry.names() if name.startswith(incomplete)]


class Choice(click.ParamType):
    """One of a few words, with the nearest one suggested."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        left, right = "{}" if isinstance(param, click.Argument) and param.required else "[]"
        return f"{left}{'|'.join(self.words)}{right}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.words:
            return str(value)
        raise BadValue(f"{short(value)}: expected one of {', '.join(self.words)}", ctx, param)


# ---------------------------------------------------------------------------------------------------------- options


class RingMembers(click.ParamType):
    """`1,2,3`: who is on a ring."""

    name = "i,j,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        words = str(value).split(",")
        good = all(word.isascii() and word.isdigit() and 0 < len(word) <= 9 for word in words)
        if not good or len(set(words)) < len(words):
            raise BadValue(f"{short(value)}: expected members, each once, such as 1,2,3", ctx, param)
        return tuple(map(int, words))


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on one line.")
force_option = click.option("--force", is_flag=True, help="Replace the output of an earlier run.")
protocol_option = click.option(
    "--protocol", type=Protocol(), default="totem", show_default=True, help="One of `ordercast protocols`."
)
rings_option = click.option(
    "--ring",
    "rings",
    type=RingMembers(),
    multiple=True,
    help="Who is on a ring, such as 1,2,3; once for each. Who is named twice is a gateway.",
)
members_option = click.option(
    "--members", type=Whole(1, MEMBERS_MAX), default=4, show_default=True, help="How many members, ids 1..N."
)


def members_on(rings: tuple[tuple[int, ...], ...], members: int) -> int:
    """How many members there are: as --members says, else as many as the rings name."""
    told = click.get_current_context().get_parameter_source("members") is not ParameterSource.DEFAULT
    return members if told or not rings else max(map(max, rings))


messages_option = click.option(
    "--messages", type=Whole(0, 10**9), default=1000, show_default=True, help="How many messages in all."
)
size_option = click.option(
    "--size", type=Whole(0, MESSAGE_BYTES_MAX), default=100, show_default=True, help="Bytes of a message."
)
service_option = click.option(
    "--service",
    type=Choice("fifo", "causal", "agreed", "safe", "quasi"),
    default=None,
    help="What is promised of a message; by default what the protocol is for.",
)
option_option = click.option(
    "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the protocol, as crash_hint=false."
)
mode_option = click.option(
    "--mode",
    type=Choice("multicast", "unicast"),
    default="multicast",
    show_default=True,
    help="One datagram for all, or one for each member.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Directory for traces and reports."
)


def group_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A group, by the directory of its run or by its file."""
    help = "The group's file, instead of DIRECTORY."
    function = click.option("--config", type=click.Path(path_type=Path), default=None, help=help)(function)
    return click.argument("directory", required=False, type=click.Path(path_type=Path))(function)


def group_file(directory: Path | None, config: Path | None) -> GroupConfig:
    """What `group_options` named, read without regard to this machine's addresses."""
    from ordercast import config as configuration

    if (directory is None) == (config is None):
        raise UsageError("expected either the directory of a run or --config FILE")
    return configuration.load(config if config is not None else directory / "group.toml", here=False)  # type: ignore[operator]


def protocol_options(pairs: tuple[str, ...], protocol: str, members: int) -> dict[str, Any]:
    """What --option said, checked against the protocol and a group of so many members."""
    import msgspec

    from ordercast import registry
    from ordercast.toml_input import expected, struct_of, unfit, value_of

    shape = registry.get(protocol).options
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
    legal = {key: note.legal for key, kind in kinds.items() if (note := registry.draw_of(kind)) is not None}
    given: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or key not in kinds:
            known = ", ".join(kinds) or "none"
            raise UsageError(f"--option {short(pair)}: expected KEY=VALUE with an option of {protocol}: {known}")
        try:
            given[key] = value_of(text)
        except ValueError:  # a bare word is a string, where one may be
            if unfit(text, kinds[key]):
                raise UsageError(f"--option {short(pair)}: expected {legal.get(key) or expected(kinds[key])}") from None
            given[key] = text
        if words := unfit(given[key], kinds[key]):
            raise UsageError(f"--option {short(pair)}: expected {legal.get(key) or words}")
    if given:
        made = struct_of(given, shape, "--option")
        if wrong := registry.get(protocol).misfit(made, range(1, members + 1)):
            raise UsageError(f"--option {wrong}")
    return given


# ----------------------------------------------------------------------------------------------------------- output


def emit(obj: Mapping[str, Any], as_json: bool, text: str | Callable[[], str]) -> None:
    """Print a result: one versioned JSON object on one line, or words for a person."""
    if as_json:
        import msgspec

        print(msgspec.json.encode({"version": JSON_VERSION, **obj}).decode())
    else:
        print(text if isinstance(text, str) else text())


class Progress:
    """A line on stderr while a person waits; silent when stderr is not a terminal."""

    def __init__(self, label: str, total: int | None = None, stream: TextIO | None = None) -> None:
        self.label, self.total, self.done = label, total, 0
        self._stream = stream or sys.stderr
        self._on = self._stream.isatty()
        self._next = 0.0
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def advance(self, count: int = 1, words: str = "") -> None:
        self.at(self.done + count, words)

    def at(self, done: int, words: str = "") -> None:
        self.done = done
        if self._on and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.1
            share = f" {100 * done // self.total} %" if self.total else f" {done}"
            self._write(f"{self.label}{share} {words}".rstrip())

    def say(self, words: str) -> None:
        """Another stage: shown at once."""
        self.label, self.done, self._next = words, 0, 0.0
        if self._on:
            self._write(words)

    def _write(self, line: str) -> None:
        if not self._on:
            return
        line = line[: shutil.get_terminal_size().columns - 1]
        self._stream.write(f"\r{line.ljust(self._width)}" + ("" if line else "\r"))
        self._stream.flush()
        self._width = len(line)


def progress(label: str, total: int | None = None) -> Progress:
    return Progress(label, total)


# ----------------------------------------------------------------------------------------------- output directories


def output_directory(path: Path, force: bool, again: bool = False) -> Path:
    """An empty directory of ours at `path`.  What is there already is replaced only with --force, and only if ours.

    `again`: one in which nothing was begun is an empty one.
    """
    where = f"--out {short(path)}"
    try:
        if path.is_dir():
            held = sorted(entry.name for entry in path.iterdir())
            if held and MARK not in held:
                raise UsageError(
                    f"{where}: holds {short(held[0])}, which no run of ordercast made: name a new directory"
                )
            if held and not force and not (again and held == [MARK]):
                raise UsageError(f"{where}: holds an earlier run: name a new directory, or use --force to replace it")
            for entry in path.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        elif path.exists() or path.is_symlink():
            raise UsageError(f"{where}: is not a directory")
        path.mkdir(parents=True, exist_ok=True)
        (path / MARK).touch()
    except OSError as error:
        raise UsageError(f"{where}: cannot be written: {error.strerror}") from None
    return path


def resumable_directory(path: Path, force: bool, record: str) -> None:
    """The same, but one that holds `record` is gone on with; anything else must be ours to replace."""
    where = f"--out {short(path)}"
    if force or not (path / record).exists():
        output_directory(path, force, again=True)  # it may have been interrupted before it wrote the record
    elif not (path / MARK).exists():
        raise UsageError(f"{where}: was not made by ordercast: name a new directory")
    elif not os.access(path, os.W_OK):
        raise UsageError(f"{where}: cannot be written: permission denied")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """What became of an interrupt on its way here is one again."""
    try:
        yield
    except Exception as error:
        if by_interrupt(error):
            raise KeyboardInterrupt from None
        raise


@contextlib.contextmanager
def going_on(out: Path, finished: Callable[[], str]) -> Iterator[None]:
    """Interrupted inside, the command says what is kept."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(kept(finished(), out)) from None


def kept(finished: str, out: Path) -> str:
    return f"interrupted: {finished}, kept in {out}; the same command goes on with the rest"

"""Where a value was said, on the command line or in the environment, so that what is wrong with it is told of that."""

from __future__ import annotations

import click
from click.core import ParameterSource

_DIGITS = 9


class Mistake(click.UsageError):
    """Raised for words that are wrong; unlike click's own faults, the message says what would be right."""


def from_environment(ctx: click.Context) -> dict[str, str]:
    """How faults name the variables that gave options their values, by option."""
    return {
        param.opts[0]: f"environment: {param.envvar}"
        for param in ctx.command.params
        if isinstance(param.envvar, str) and ctx.get_parameter_source(param.name or "") is ParameterSource.ENVIRONMENT
    }


def count(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """The number of GPUs; int() alone would take spaces, underscores and other scripts' digits too. Raises Mistake."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        said = from_environment(ctx).get(param.opts[0], param.opts[0])
        raise Mistake(f"{said}: {text!r} is no number of GPUs, such as 8", ctx)
    return int(text)


def some(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """The words of a command, of which there has to be one. Raises Mistake."""
    if not words:
        raise Mistake(f"CMD is missing: say what to run, such as `{ctx.command_path} -- nvidia-smi`", ctx)
    return words

"""The command `abex`: one file a command, loaded when it is asked for."""

from __future__ import annotations

import importlib
import signal
import sys
import warnings
from typing import Any, TextIO

import click

from abex.support.errors import UserError, nearest
from abex.support.extras import needed

#: command -> (one line for the overview, the extra that is enough for all of it if it has one). Each is a module that defines a
#: click command `command`, of the same name but for ``list``: in `listing`, lest it hide the type.
COMMANDS: dict[str, tuple[str, str | None]] = {
    "reproduce": ("every experiment of the paper, then the report; resumes where it stopped", "report"),
    "run": ("one experiment: a built-in one or your own TOML file", "report"),
    "report": ("one HTML page of everything the store holds", "report"),
    "results": ("what the store holds: list, export, prune", "report"),
    "simulate": ("compare policies from the command line: a table, a figure, the numbers", "simulate"),
    "experiment": ("who won an experiment, and may one stop: a table, a sentence, a figure", "data"),
    "evaluate": ("what other policies would have earned, from the log of one", "data"),
    "arena": ("every policy, or your own, on many instances, and the scores", "report"),
    "player": ("players that many processes share: create, decide, reward, summary, log", None),
    "serve": ("players behind HTTP: a decision service", "serve"),
    "boost": ("train and use boosted classifiers, or hand them to other programs", "report"),
    "list": ("policies, environments, experiments, data sets; or one explained", None),
    "theory": ("when ABE explores, what is proved about it, and parameters with a reason", "simulate"),
    "warm": ("compile ahead of time what would be compiled at first use", "simulate"),
    "data": ("data sets: what is here, what is missing, fetch and check them", "data"),
}


class Commands(click.Group):
    """A group whose commands are imported on demand, so that `abex --help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a person's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; an unknown name is answered with the nearest one."""
        if cmd_name not in COMMANDS:
            raise UserError(f"unknown command {cmd_name!r}{nearest(cmd_name, COMMANDS)}; see `abex --help`")
        module = importlib.import_module(f"abex.cli.{'listing' if cmd_name == 'list' else cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (line, _) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="abex", prog_name="abex")
def group() -> None:
    """Exploration policies: simulate and serve them, boost with them, reproduce "Almost Boltzmann Exploration"."""


LONGEST_SENTENCE = 180  # characters of what click says


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a person reads it, without the line of code that gave it."""
    click.echo(f"abex: warning: {message}", err=True)


def sentence(error: click.ClickException) -> str:
    """What click has to say, in a line, and where the help is."""
    said = error.format_message().rstrip(".")
    if len(said) > LONGEST_SENTENCE:  # a value of any length may stand in it: its ends tell what it is
        said = f"{said[: LONGEST_SENTENCE // 2]} ... {said[-LONGEST_SENTENCE // 2 :]}"
    context = getattr(error, "ctx", None)
    where = f"; see `{context.command_path} --help`" if context is not None else ""
    return f"{said[:1].lower()}{said[1:]}{where}"


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line: a person's mistake is one sentence and exit code 2, a warning one sentence."""
    from abex.cli.signals import Terminated, end_after, exit_on_signal

    warnings.showwarning = show_warning
    asked = (sys.argv[1:] if arguments is None else arguments)[:1]
    extra = COMMANDS[asked[0]][1] if asked and asked[0] in COMMANDS else None
    try:
        with exit_on_signal(watched=asked != ["serve"]), needed(extra):  # a server ends in its own time
            return group.main(args=arguments, prog_name="abex", standalone_mode=False) or 0
    except UserError as error:
        message = str(error)
    except (click.exceptions.Abort, KeyboardInterrupt):
        end_after(signal.SIGINT)
    except Terminated:
        end_after(signal.SIGTERM)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        message = sentence(error)
    except MemoryError:
        message = "there is not enough memory for this: take fewer arms, steps, replications or rows"
    except BrokenPipeError:
        sys.exit(1)
    click.echo(f"abex: {message}", err=True)
    sys.exit(2)

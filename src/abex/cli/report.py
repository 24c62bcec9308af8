"""`abex report`: the HTML page from what the store holds."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path

import click

from abex.cli.experiment_options import no_results, open_store, store_option
from abex.cli.help import examples

EVERY = 5  # seconds between two looks while watching


@click.command(epilog=examples("abex report --open"))
@click.option(
    "--out", default=None, help="The file to write; report.html in the results folder unless given."
)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--watch", is_flag=True, help="Write it again while a sweep is running, until Ctrl-C.")
@store_option
def command(out: str | None, show: bool, watch: bool, folder: str) -> None:
    """Write one self-contained page: verdicts, interactive figures, tables; it works offline from a file."""
    from abex.lab.report import write_report

    path = Path(out) if out else Path(folder) / "report.html"
    with open_store(folder, must_exist=True) as store:
        if not (watch or len(store)):
            raise no_results(folder)
        size = write_report(store, path, refresh=EVERY if watch else None)
        click.echo(f"{path} ({size / 1e6:.1f} MB)")
        if show and not webbrowser.open(path.resolve().as_uri()):
            click.echo(f"abex: no browser could be started, open {path} yourself", err=True)
        if watch:
            try:
                before = store.state()
                while True:
                    time.sleep(EVERY)
                    if (now := store.state()) != before:
                        write_report(store, path, refresh=EVERY)
                        before = now
            except KeyboardInterrupt:
                write_report(store, path)

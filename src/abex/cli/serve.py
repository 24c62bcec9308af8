"""`abex serve`: players of a store behind HTTP."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from abex.cli.help import examples, number_option
from abex.cli.player import STORE
from abex.cli.signals import Terminated


@click.command(
    epilog=examples(
        'abex serve --store "sqlite:///shop.db"',
        "abex serve --new-key decide >> keys.txt",
        "abex serve --host 0.0.0.0 --keys keys.txt --workers 4 --store postgresql://abex@db/shop",
    )
)
@click.option(
    "--store",
    default=STORE,
    show_default=True,
    envvar="ABEX_STORE",
    help="Where players are kept: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE ($ABEX_STORE).",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; beyond this machine only with --keys.",
)
@number_option("--port", 8080, "0 takes a free one.", least=0, most=65_535)
@number_option("--workers", 1, "Processes that answer.", most=1_000)
@click.option(
    "--keys", "keys_file", help="A file of API keys: a role and a hash a line, as --new-key prints them."
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy in front decides who may ask.",
)
@number_option("--max-body", 1 << 20, "Bytes of a request.")
@number_option("--max-batch", 1_000, "Decisions or rewards in a request.")
@number_option("--max-open", 100_000, "Decisions of a player that wait.")
@number_option("--max-arms", 1_000_000, "Arms of a player.")
@number_option("--max-players", 1_000, "Players of the store.")
@number_option("--max-log", 200_000, "Decisions of a log, the latest.")
@number_option("--max-connections", 1_000, "Open connections of a worker.")
@number_option("--max-client-connections", 500, "Open connections of one address.")
@click.option(
    "--client-timeout",
    type=float,
    default=20.0,
    show_default=True,
    help="Seconds in which a client must send a request and read an answer.",
)
@number_option("--idle-timeout", 60, "Seconds between two requests of a connection.")
@click.option("--access-log", is_flag=True, help="Log every request, not only those that fail.")
@click.option(
    "--new-key", "role", help="Print a new API key for a role (decide, reward, read, admin), and end."
)
def command(keys_file: str | None, role: str | None, **given: Any) -> None:
    """Serve the players of a store: decide, reward and watch by HTTP; /openapi.json describes it."""
    if role is not None:
        from abex.service.keys import new_key

        key, line = new_key(role)
        click.echo(f"the key, shown once: {key}", err=True)
        click.echo(line)
        return
    from abex.service.keys import KeyFile
    from abex.service.run import listening_socket, serve
    from abex.service.settings import Settings

    settings = Settings(keys=KeyFile(keys_file) if keys_file else None, **given)
    listening = listening_socket(settings)
    host, port = listening.getsockname()[:2]
    click.echo(
        f"abex serves {settings.store.partition('@')[2] or settings.store} at http://{host}:{port}", err=True
    )
    with suppress(Terminated, KeyboardInterrupt):  # the server has answered what was under way
        serve(settings, listening)

"""`abex serve`: players of a store behind HTTP."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from abex.cli.help import examples, number_option
from abex.cli.player import STORE
from abex.cli.signals import Terminated
from abex.support.errors import UserError, one_of


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
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Another limit than the usual one, such as max-open=1e6 or client-timeout=5; repeat for more. They are "
    "max-body, max-batch, max-open, max-arms, max-players, max-log, max-connections, max-client-connections, "
    "client-timeout and idle-timeout (seconds).",
)
@click.option("--access-log", is_flag=True, help="Log every request, not only those that fail.")
@click.option(
    "--new-key",
    "role",
    help='Print a new API key for a role (decide, reward, read, admin), which a name may follow ("admin ann"), and end.',
)
def command(keys_file: str | None, role: str | None, limits: tuple[str, ...], **given: Any) -> None:
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

    keys = KeyFile(keys_file) if keys_file else None
    settings = Settings(keys=keys, **limits_of(limits), **given)
    listening = listening_socket(settings)
    host, port = listening.getsockname()[:2]
    click.echo(
        f"abex serves {settings.store.partition('@')[2] or settings.store} at http://{host}:{port}", err=True
    )
    with suppress(Terminated, KeyboardInterrupt):  # the server has answered what was under way
        serve(settings, listening)


def limits_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """The limits that a person has named, as `Settings` calls them.

    >>> limits_of(("max-open=1e6", "client-timeout=0.5"))
    {'max_open': 1000000, 'client_timeout': 0.5}
    """
    from abex.service.settings import LIMITS

    names = {name.replace("_", "-"): name for name in LIMITS}
    found: dict[str, Any] = {}
    for text in texts:
        name, _, number = text.partition("=")
        name = names[one_of("limit", name, names)]
        try:
            value = float(number)
        except ValueError:
            raise UserError(f"--limit {text!r} has no number: write one such as max-open=1e6") from None
        found[name] = int(value) if value.is_integer() else value
    return found

"""What a client feels when its network is cut, its server moves or stops, or is far away: hosts made of network namespaces.

    python -m benchmarks.network_cut --seconds 20            # as root, with the program ip

Everything is at its defaults. A client decides ten times and reports a reward, round after round; the table has the longest of
its calls while the trouble lasted, how many rewards were refused and kept, when the first one was written afterwards, and that
all are there in the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests import postgresql
from tests.players.hosts import Host, Proxy, Shop, hosts

from abex.players import Player
from abex.players.store import DEADLINE, SILENT

TROUBLES = ("cut", "fail-over", "stopped server", "100 ms away")


@contextmanager
def troubled(trouble: str, host: Host, proxy: Proxy, server: postgresql.Server) -> Iterator[None]:
    """Meanwhile."""
    if trouble == "stopped server":
        with server.stopped():
            yield
        return
    if trouble == "cut":
        host.cut()
    elif trouble == "fail-over":
        proxy.fall_silent()  # for the connections that there are; a new one is answered
    yield
    host.mend()


def trial(trouble: str, seconds: float) -> str:
    """A line of the table."""
    with ExitStack() as stack:
        (host,) = stack.enter_context(hosts(1))
        server = postgresql.Server()
        stack.callback(server.remove)
        proxy = Proxy(server.port, host.address, 0.05 if trouble == "100 ms away" else 0.0)
        stack.callback(proxy.close)
        url = server.url().replace(f"127.0.0.1:{server.port}", f"{host.address}:{proxy.port}")
        shop = Shop(host, url, DEADLINE, SILENT)
        stack.callback(shop.kill)
        while shop.play(3)["kept"]:
            pass
        answers = []
        with troubled(trouble, host, proxy, server):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                answers.append(shop.play(1))
        mended = time.monotonic()
        while (last := shop.play(1))["kept"]:
            pass
        back = time.monotonic() - mended
        shop.close()
        with Player.open(server.url(), "shop") as player:
            made, observed = (
                sum(getattr(arm, what) for arm in player.summary()) for what in ("pulls", "observations")
            )
        there = "yes" if (made, observed) == (last["made"], last["told"]) else "NO"
        longest = [max(answer[what] for answer in answers) for what in ("decide", "update")]
        refused = sum(answer["kept"] for answer in answers)
        return (
            f"| {trouble} | {1e3 * longest[0]:,.1f} ms | {longest[1]:.1f} s | {refused} of {len(answers)}"
            f" | {back:.1f} s | {there} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    print(
        f"| {options.seconds:g} s of | longest decide | longest update | rewards refused, kept | written after | all there |"
    )
    for trouble in TROUBLES:
        print(trial(trouble, options.seconds), flush=True)


if __name__ == "__main__":
    main()

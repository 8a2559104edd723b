"""``tempest-agent watch``: the game in a web page, served locally or written as files."""

from __future__ import annotations

from pathlib import Path

import click

from tempest_agent.commands.options.output import only_results_on_stdout
from tempest_agent.commands.options.types import PATH, WholeNumber


@click.command()
@click.argument("player", default="champion", metavar="[CHECKPOINT|latest|champion|expert]")
@click.option("--export", type=PATH, help="Write the page into this folder instead of serving it.")
@click.option(
    "--port",
    type=WholeNumber(1, 65_535),
    help="Port of the local server.  [default: 8765, or any free one]",
)
def watch(player: str, export: Path | None, port: int | None) -> None:
    """Show the game in a web page: watch PLAYER there, or play it yourself.

    The page runs the compiled rules of this package, so its games are those of the environment,
    byte for byte. It is served to this computer only; an exported one works on any web server.
    """
    with only_results_on_stdout():
        from tempest_agent.web.server import SiteServer
        from tempest_agent.web.site import make_site

        site = make_site((player, "champion", "expert"))
    if export is not None:
        site.write(export)
        size = sum(map(len, site.files.values()))
        click.echo(f"{export}: {len(site.files)} files, {size:,} bytes; put them on any web server")
        click.echo(f"or look at them here: python -m http.server --directory {export}")
        return
    with SiteServer(site, port) as server:
        number = server.server_port
        click.echo(f"{server.address}  (Ctrl-C ends it)")
        click.echo(
            f"from another computer: ssh -L {number}:127.0.0.1:{number} HOST, then the same address"
        )
        server.serve_forever()

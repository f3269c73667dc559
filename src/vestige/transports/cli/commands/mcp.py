"""`vestige mcp`: the MCP server on standard input and output."""

import click

from vestige.transports.cli.session import CliSession


def options() -> list[click.Parameter]:
    return [
        click.Option(["--profile"], metavar="core|full", help="Which tools to list (default core)."),
        click.Option(
            ["--exclusive"], is_flag=True, help="Refuse to start while another server uses the store."
        ),
    ]


def mcp(session: CliSession, profile: str | None, exclusive: bool) -> None:
    """Serve the memory to an MCP client over standard input and output (same as vestige-mcp)."""
    from vestige.transports.mcp.catalog import packaged
    from vestige.transports.mcp.stdio import serve_exclusively, serve_process

    if profile is not None:
        session.flags["mcp.profile"] = profile
    if exclusive:
        session.flags["storage.exclusive"] = True
    settings = session.settings()
    tools = packaged(settings.mcp.profile, settings.mcp.instructions)
    serve = serve_exclusively if settings.storage.exclusive else serve_process
    click.get_current_context().exit(serve(lambda: session.open_server(session.flags), tools))

"""A server of MCP, written with the library of its makers: it says in a file that it was started."""

from __future__ import annotations

from pathlib import Path

from mcp.server.mcpserver import MCPServer

with Path("started").open("a", encoding="utf-8") as started:
    started.write("x")

server = MCPServer("depot")


@server.tool()
def count(what: str) -> str:
    """Counts; there are no ships."""
    if what == "ships":
        raise ValueError("no ships")
    return f"12 {what}"


if __name__ == "__main__":
    server.run()

"""A client of MCP, written with the library of its makers: starts COMMAND, and calls TOOL once for each word.

COMMAND, TOOL and its PARAMETER are the first arguments.
"""

from __future__ import annotations

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: list[str], tool: str, parameter: str, words: list[str]) -> None:
    """Prints what each call is answered."""
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        print(any(known.name == tool for known in tools.tools))
        for word in words:
            result = await session.call_tool(tool, {parameter: word})
            print(result.is_error, [getattr(part, "text", None) for part in result.content])


asyncio.run(main(sys.argv[1].split(), sys.argv[2], sys.argv[3], sys.argv[4:]))

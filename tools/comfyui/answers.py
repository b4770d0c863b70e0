"""Answers to requests as text. In: text with words of clients, or names of files. Out: a response."""
from typing import Any


def words(text: str, status: int = 200) -> Any:
    """The text as a response. Characters that UTF-8 cannot express, as in a file's name that is not UTF-8, become
    \\udc.."""
    from aiohttp import web
    return web.Response(status=status, text=text.encode(errors="backslashreplace").decode())

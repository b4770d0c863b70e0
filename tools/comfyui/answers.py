"""Answers to requests as text. In: text with words of clients, or names of files. Out: a response."""
from typing import Any


def words(text: str, status: int = 200) -> Any:
    """The text as a response. A character that UTF-8 cannot express becomes an escape such as \\udcff. Names of files
    that are not UTF-8 have such characters."""
    from aiohttp import web
    return web.Response(status=status, text=text.encode(errors="backslashreplace").decode())

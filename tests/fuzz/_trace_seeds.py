"""Seeds for the trace: lines as programs write them, and invalid ones."""
import pathlib

LINES = [
    b'{"kind":"READ","by":"comfyui","owner":7,"patcher":140555,"parents":[140231],"inner":140244,"rule":"parent",'
    b'"policy":"free"}',
    b' {"kind": "LOST",\r\n\t"stack": ["a (b.py:1)", "\\u00e9\\ud83d\\ude00\\n"], "x": {"y": [1, -2.5e+3, true, '
    b'false, null, {}, []]}}\n',
    '{"ö":"😀"}'.encode(), b'{"n":1}', b'{"a":"\\u006', b"{" * 40, b'{"a":' + b"[" * 31 + b"]" * 31 + b"}", b"{}", b"[]",
    b""
]
for number, line in enumerate(LINES):
    pathlib.Path(f"line{number}").write_bytes(line)

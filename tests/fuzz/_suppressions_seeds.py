"""Seeds for the file of suppressions: a complete file, and unusual lines."""
import pathlib

whole = """# known
function=json_cache_* module=libjson*.so until=2027-03-31  # filled once
owner="model:UN\\xc3\\x89T *"
module="a \\"b\\" \\\\ \\n\\t\\r"
function=operator?new[](*) owner=*
"""
for name, text in (("whole", whole), ("stars", "function=" + "*a" * 100 + "*b"),
                   ("expired", "owner=* until=1970-01-01"), ("open", 'owner="'), ("merge", "<<<<<<< HEAD\nowner=*\n"),
                   ("windows", "owner=*\r\n\r\n"), ("empty", "")):
    pathlib.Path(name).write_text(text)

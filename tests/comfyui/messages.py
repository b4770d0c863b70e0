#!/usr/bin/env python3
"""The texts of the tab "Memory", without a browser: each language has each text, with the same values in it, and each
text is used. No script of the tab has a text of its own. tests/comfyui/sidebar_french.py checks the texts in the
page."""
import json, re

import support

PACK = support.ROOT / "tools/comfyui"
MODULE = (support.ROOT / "tools/python/memstow.py").read_text()
TECHNICAL = {"Content-Type", "POST", "GET", "Comfy.Locale"}
TO_SERVER = {"the button in the page"} # the reason of a trigger in the trace, which is English
SETTINGS = {text for one in json.loads((PACK / "locales/en/settings.json").read_text()).values()
            for text in one.values()} # ComfyUI itself translates them
PLAIN = re.compile(r"""//[^\n]*|/\*.*?\*/|(?<=[(,=])\s*/(?![/*])(?:\\.|\[[^\]\n]*\]|[^/\n])+/|[^"`{}/]+|/""", re.DOTALL)
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
FIXED = re.compile(r"(?:\\.|[^`$\\]|\$(?!\{))*", re.DOTALL)


def table():
    """{language: {key: text}} of messages.js."""
    source = (PACK / "web/messages.js").read_text()
    body = re.search(r"^export const MESSAGES = \{\n(.*?)^\};", source, re.MULTILINE | re.DOTALL)[1]
    body = re.sub(r'"\s*\+ "', "", body)
    body = re.sub(r'(?m)([{,]\s*|^\s*)(\w+): (?=["{])', r'\1"\2": ', body)
    return json.loads("{" + re.sub(r",(\s*)(?=\})", r"\1", body.strip().rstrip(",")) + "}")


def template(source, at, found):
    """Adds to `found` the fixed parts of a template, with a space for each value, and the strings within the values.
    Returns the place behind the template."""
    fixed = ""
    while source[at] != "`":
        part = FIXED.match(source, at)
        fixed, at = fixed + part[0], part.end()
        if source[at] == "$":
            fixed, at = fixed + " ", code(source, at + 2, found)
    found.append(fixed)
    return at + 1


def code(source, at, found):
    """Adds to `found` the strings of code up to the brace that closes the code, or to the end. Returns the place behind
    the code."""
    depth = 0
    while at < len(source):
        letter = source[at]
        if letter == "`":
            at = template(source, at + 1, found)
        elif letter == '"':
            string = STRING.match(source, at)
            found.append(string[1])
            at = string.end()
        elif letter in "{}":
            depth, at = depth + (1 if letter == "{" else -1), at + 1
            if depth < 0:
                return at
        else:
            at = PLAIN.match(source, at).end()
    return at


def literals(source):
    """The strings of a script, and the fixed parts of its templates."""
    found = []
    code(source, 0, found)
    return found


def is_text(literal):
    """Whether a literal is a text for people: it has two words in a row, or a capital letter at its beginning."""
    words = [word for word in literal.split() if "memstow" not in word and not word.startswith("pi")]
    return bool(re.search(r"[A-Za-z]{2,}[,:;.]? \(?[A-Za-z]{2,}", " ".join(words))
                or re.match(r"[ ,:]*[A-Z][a-z]", literal))


def texts_of(source, keys):
    return [one for one in literals(source)
            if is_text(one) and one not in keys | TECHNICAL | TO_SERVER | SETTINGS]


MESSAGES = table()
english = MESSAGES["en"]
assert set(MESSAGES) >= {"en", "fr"} and len(english) > 80, MESSAGES.keys()
values = lambda text: sorted(re.findall(r"\{(\w+)\}", text))
for language, texts in MESSAGES.items():
    assert list(texts) == list(english), (language, set(texts) ^ set(english))
    for key, text in texts.items():
        assert text.strip() and values(text) == values(english[key]), (language, key, text)

# --- each text is used, and each that is used is there
scripts = {file.name: file.read_text() for file in (PACK / "web").glob("*.js")}
own = scripts["messages.js"]
scripts["messages.js"] = own[:own.index("export const MESSAGES")] + own.partition("\n};\n")[2]
used = {one for source in scripts.values() for one in literals(source)}
outcomes = set(json.loads(re.search(r"^OUTCOMES = (.*)$", MODULE, re.MULTILINE)[1])) # come from the server
assert outcomes <= set(english), outcomes
assert set(english) <= used | outcomes, set(english) - used - outcomes
asked = {key for source in scripts.values() for call in re.findall(r'\btext\(([^(){]*?)[,)]', source)
         for key in re.findall(r'"([^"]+)"', call)}
assert len(asked) > 60 and asked <= set(english), asked - set(english)

# --- no text stands outside of the table MESSAGES. The planted texts show that the search finds such a text
for planted in ('element("p", {}, "Nothing here yet")', 'toast("info", `Run ${number} has ended`)', '"Models"',
                'x ? `${size(n)}: held by ${y ? "Someone" : ""}` : ""'):
    assert texts_of(planted, set()), planted
keys = set(english)
for name, source in scripts.items():
    style = re.sub(r"const STYLE = `.*?`;", "", source, flags=re.DOTALL)
    found = texts_of(re.sub(r"category: \[.*?\]", "", style), keys)
    assert not found, (name, found)

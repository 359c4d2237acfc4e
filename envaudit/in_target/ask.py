"""Run by the interpreter under audit, never imported: it says on descriptor 3 who it is.

Works with Python 3.8 and newer, CPython or not. It takes what every interpreter has loaded
before a script begins (os, sys, site) and imports nothing more: `json`, `platform` and
`sysconfig` would take longer than all the rest. The answer is one JSON object.
"""

import os
import sys

# An interpreter puts the folder of a script first on sys.path; that entry is ours, not its own.
if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
    del sys.path[0]


def as_json(value: object) -> str:
    """JSON text, pure ASCII, of a text, flag, list of those, or None."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([as_json(item) for item in value]) + "]"
    out = []
    for char in str(value):
        code = ord(char)
        if code > 0xFFFF:
            code -= 0x10000
            out.append("\\u%04x\\u%04x" % (0xD800 | code >> 10, 0xDC00 | code & 0x3FF))  # noqa: UP031
        elif char in '"\\' or not 0x20 <= code < 0x7F:
            out.append("\\u%04x" % code)  # noqa: UP031
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


site = sys.modules.get("site")
machine = os.uname()
answer = {
    "version": sys.version.split()[0],
    "implementation": sys.implementation.name,
    "executable": sys.executable,
    "prefix": sys.prefix,
    # real_prefix: virtualenv before version 20.
    "base_prefix": getattr(sys, "real_prefix", sys.base_prefix),
    "path": [entry for entry in sys.path if isinstance(entry, str)],
    "stdlib": os.path.dirname(os.__file__),
    "free_threaded": "t" in getattr(sys, "abiflags", ""),
    "cache_tag": sys.implementation.cache_tag,
    "platform": sys.platform + "-" + machine.machine,
    "multiarch": getattr(sys.implementation, "_multiarch", None),
    "user_site": getattr(site, "USER_SITE", None),
    "user_site_enabled": bool(getattr(site, "ENABLE_USER_SITE", False)),
    "system": machine.sysname,
    "release": machine.release,
    "system_version": machine.version,
    "machine": machine.machine,
}
text = "{" + ", ".join([as_json(key) + ": " + as_json(answer[key]) for key in answer]) + "}"
os.write(3, text.encode("ascii"))
# Whatever sitecustomize or a .pth file registered for the end (coverage data, ...) stays undone.
os._exit(0)

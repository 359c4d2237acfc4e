"""Environment variables that change what the GPU stack does: an allow-list, never a secret."""

from __future__ import annotations

from envaudit.probes import Look
from envaudit.variables import allowed, clean, is_withheld


def look(look: Look) -> None:
    """Tell the variables of the allow-list as this process has them."""
    host = look.host
    if host.files_only or (host.recorded is not None and "env" not in host.recorded):
        look.gap("env.*", "no environment is known of this machine")
        return
    for name in sorted(host.env):
        if not allowed(name):
            continue
        if is_withheld(name):
            look.gap(f"env.{name}", "set; its value is not told")
        else:
            look.add(f"env.{name}", clean(host.env[name]), f"environment {name}", even_empty=True)

"""GPU names as people write them: with a count, a memory size, several on one line."""

from __future__ import annotations

import re

from envaudit.patterns import regex

GPUS_TOLD = 16
"""Most GPUs that are believed of a line that a person wrote."""

_NAME = regex(
    r"(?:nvidia[ ®]{0,2})?(?:geforce[ ®]{0,2})?(?:"
    r"(?:gtx[ ])?titan[ ](?:xp|v|rtx|z|black)|gtx[ ]titan[ ]x|titan[ ]x[ ]\(?pascal\)?"
    r"|(?:(?:quadro|tesla)[ ]?)?(?:rtx|gtx|gt)[ \-]?(?:pro[ ])?a?[0-9]{3,4}"
    r"(?:[ ]?(?:ti|super|ada|max-q|mobile|laptop|notebook|gpu|d|m|generation|sff|blackwell|"
    r"workstation|edition|server|with|design))*"
    r"|tesla[ ]?[acgkmptvl][0-9]{1,3}[a-z]{0,2}(?:-[a-z0-9]{2,6}){0,2}"
    r"|quadro[ ][a-z]{0,3}[0-9]{3,5}[a-z]?"
    r"|(?:gb|gh|[abhlptvk])[0-9]{1,3}[sgmx]?(?:-[a-z0-9]{2,6}){0,3}"
    r"(?:[ ](?:nvl|pcie|sxm[0-9]?|hbm3e?))*"
    r"|a[0-9]{4}"
    r"|mx[ ]?[0-9]{3}"
    r"|jetson(?:[ ](?:agx|orin|xavier|nano|nx|tx[12]|thor))+"
    r")(?![0-9a-z])",
    re.IGNORECASE,
)
_TWO_GENERATIONS = regex(r"(?:nvidia )?rtx ?[0-9]000", re.IGNORECASE)
"""RTX 6000 is a Quadro of Turing and a card of Ada: this name alone does not tell which."""
_GLUED = regex(r"\b(rtx|gtx)-?(?=[0-9a])", re.IGNORECASE)
_GLUED_BEHIND = regex(r"(?<=[0-9])(?=(?:ti|super)\b)", re.IGNORECASE)
_COUNT = regex(r"([0-9]{1,2})[ ]?[x×*][ ]?(?=[A-Za-z])|(one|two|four|eight)[ ](?=[A-Za-z])", re.I)
_COUNT_BEHIND = regex(r"[ ]*[(\[]?[ ]*[x×*][ ]?([0-9]{1,2})[)\]]?(?![0-9A-Za-z])", re.IGNORECASE)
_MEMORY = regex(
    r"[ ,\-/|]*[(\[]?[ ]*(?:[0-9]{1,3}(?:[.,][0-9]{1,2})?[ ]?G(?:i?B)?|[0-9]{3,6}[ ]?Mi?B)\b"
    r"(?:[ ]?(?:of[ ])?(?:v?ram|memory|gddr[0-9]x?|hbm[0-9]e?))?[ ]*[)\]]?"
    r"(?:[ ]?(?:v?ram|memory|gddr[0-9]x?))?",
    re.IGNORECASE,
)
_BETWEEN = regex(r"[ ]*(?:,|;|\+|&|\band\b)[ ]*", re.IGNORECASE)
_ASIDE = regex(r"[ ]*\((?!or\b|and\b|not\b)[A-Za-z][A-Za-z ,.\-]{1,30}\)")
_GPUS = regex(r"^(?:NVIDIA )?(?:GPU|card)s?$", re.IGNORECASE)
_WORDS = {"one": 1, "two": 2, "four": 4, "eight": 8}


def gpu_names(text: str) -> list[str]:
    """The GPUs that a line names, one entry each; empty where the line says anything else.

    "2x A100 80GB" gives two, "RTX 3090 (24 GB), GTX 1080 Ti" one of each. What cannot be told
    apart ("RTX 3090 or 4090", "any") is left out: a wrong GPU is worse than none.
    """
    rest = text.strip().strip("`*_\"'. ")[:200]
    found: list[str] = []
    while rest:
        count = _COUNT.match(rest)
        number = 1
        if count is not None:
            number = int(count[1]) if count[1] else _WORDS[count[2].lower()]
            rest = rest[count.end() :]
        name = _NAME.match(rest)
        if name is None or _TWO_GENERATIONS.fullmatch(name[0]):
            return []
        rest = rest[name.end() :]
        memory = _MEMORY.match(rest)
        if memory is not None:
            rest = rest[memory.end() :]
        behind = _COUNT_BEHIND.match(rest)
        if behind is not None:
            number, rest = int(behind[1]), rest[behind.end() :]
            memory = _MEMORY.match(rest)
            if memory is not None:
                rest = rest[memory.end() :]
        if not 0 < number <= GPUS_TOLD or len(found) + number > GPUS_TOLD:
            return []
        found += [_tidy(name[0])] * number
        aside = _ASIDE.match(rest)
        if aside is not None:
            rest = rest[aside.end() :]
        rest = _GPUS.sub("", rest.strip(" ."))
        if not rest:
            break
        between = _BETWEEN.match(rest)
        if between is None or between.end() == len(rest):
            return []
        rest = rest[between.end() :]
    return found


def _tidy(name: str) -> str:
    name = _GLUED_BEHIND.sub(" ", _GLUED.sub(r"\1 ", name.replace("®", " ")))
    return " ".join(name.split())

"""Take what identifies a person or a site out of a snapshot, and leave it usable.

A pass of its own over a finished snapshot. First every secret is found: by the facts that hold
one (host name, serial number) and by its form (a home folder, an address). Then every occurrence
is replaced, in names, values, sources, details and reasons alike. One secret has one replacement,
so what belonged together still does.

What is not hidden: names that say nobody (root, ubuntu), public hosts, loopback addresses, PCI
addresses. A name that is also a word of the GPU stack is hidden only where it is plainly a name:
a user called tesla goes from /home/tesla and tesla@, but stays in "Tesla T4".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from envaudit.facts import CATALOGUE, spec_of
from envaudit.model import Fact, ProbeRun, Snapshot, Value, covers
from envaudit.snapshot import dump, finish

MARK = "redacted"
"""Key in a snapshot's `tool` that says that this was done; such a snapshot is left as it is."""

SECRET_FACTS = {
    "host.name": "host",
    "env.HOSTNAME": "host",
    "env.USER": "user",
    "env.LOGNAME": "user",
    "boot.id": "uuid",
    "gpu.*.uuid": "GPU",
    "gpu.*.serial": "serial",
}
"""Facts whose whole value is a secret, with its kind. Others are searched for secrets."""

_NOBODY = """
root admin administrator user users guest nobody ubuntu debian fedora centos rocky almalinux
arch opensuse suse ec2-user azureuser opc cloud-user core vagrant docker podman runner
runneradmin jenkins gitlab-runner jovyan vscode coder codespace gitpod conda mamba mambauser
linuxbrew nvidia cuda torch pytorch tensorflow triton python pip gpu gpus test tester dev
developer build builder work worker workspace data shared public default local localhost
localhost.localdomain localdomain (none) host hosts home node server vm app apps service system
linux windows windows10 wsl docker-desktop kernel driver lab git ssh oauth2 token domain email
serial uuid mac ip id redacted
"""
NOBODY = frozenset(_NOBODY.split())
"""Names of accounts and machines that identify nobody: they stay, since hiding them tells less
and a word as common as these would be replaced where it is none."""

_PUBLIC_HOSTS = """
pytorch.org python.org anaconda.com anaconda.org conda.io
prefix.dev nvidia.com nvcr.io docker.io docker.com quay.io ghcr.io gcr.io k8s.io github.com
githubusercontent.com gitlab.com bitbucket.org huggingface.co hf.co googleapis.com google.com
microsoft.com ubuntu.com fedoraproject.org redhat.com centos.org rockylinux.org
almalinux.org opensuse.org suse.com archlinux.org alpinelinux.org kernel.org gnu.org vllm.ai
tensorflow.org json-schema.org readthedocs.io
"""
PUBLIC_HOSTS = frozenset(_PUBLIC_HOSTS.split())
"""Hosts that everybody uses, with all their subdomains."""

PUBLIC_UUIDS = frozenset(
    ("8be4df61-93ca-11d2-aa0d-00e098032b8c", "605dab50-e046-4300-abb6-3dd810dd8b23")
)
"""Vendors of EFI variables: part of the names of public files below efivars."""


def redact(snapshot: Snapshot, salt: str | None = None, users: Sequence[str] = ()) -> Snapshot:
    """The snapshot with names, addresses, UUIDs, serial numbers and logins replaced.

    Replacements are numbered within the snapshot: host-1, user-1, GPU-00000001-... With a salt
    they are computed from it, so that snapshots redacted with one salt still show which of them
    are of one machine; whoever has the salt can test guesses.
    `users` are account names to hide besides those that the snapshot itself gives away.
    """
    if snapshot.tool.get(MARK) is True:
        return snapshot
    search = _Search(snapshot, _Names(dump(snapshot), salt), users)
    hide = _Hider(search.found())
    facts: dict[str, Fact] = {}
    for name, fact in sorted(snapshot.facts.items()):
        secret = search.whole(_kind_of(name), fact.value)
        hidden = Fact(
            hide.text(name),
            secret or hide.value(fact.value),
            hide.text(fact.source),
            fact.confidence,
        )
        facts.setdefault(hidden.name, hidden)
    host = {
        key: search.whole(_HOST_KEYS.get(key, ""), value) or hide.value(value)
        for key, value in snapshot.host.items()
    }
    return finish(
        snapshot._replace(
            id="",  # a hash over what was replaced, and could confirm a guess
            facts=facts,
            probes=tuple(hide.run(run) for run in snapshot.probes),
            label=None if snapshot.label is None else hide.text(snapshot.label),
            tool={**hide.values(snapshot.tool), MARK: True},
            host=host,
            target=hide.values(snapshot.target),
            transactions=tuple(hide.values(one) for one in snapshot.transactions),
        )
    )


_HOST_KEYS = {"name": "host", "boot_id": "uuid"}


def _kind_of(name: str) -> str:
    return next((kind for pattern, kind in SECRET_FACTS.items() if covers(pattern, name)), "")


def _fold(text: str) -> str:
    """ASCII letters in lower case, as a search that ignores their case sees them."""
    return text.translate(_LOWER)


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


# -- what stands for a secret ----------------------------------------------------------------


class _Names:
    """One replacement for each secret, none of which stood in the snapshot before."""

    def __init__(self, original: str, salt: str | None) -> None:
        self._original = _fold(original)
        self._salt = salt
        self._given: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, kind: str, secret: str) -> str:
        """What stands for this secret everywhere."""
        key = kind, _fold(secret)
        if key not in self._given:
            name = next(
                name
                for name in (_format(kind, number) for number in self._numbers(*key))
                if name not in self._taken and _fold(name) not in self._original
            )
            self._given[key] = name
            self._taken.add(name)
        return self._given[key]

    def _numbers(self, kind: str, secret: str) -> Iterator[str]:
        if self._salt is None:
            yield from map(str, count(1 + sum(1 for given, _ in self._given if given == kind)))
        else:
            import hashlib
            import hmac

            for attempt in count():
                text = f"{attempt} {kind} {secret}".encode("utf-8", "backslashreplace")
                yield hmac.new(self._salt.encode(), text, hashlib.sha256).hexdigest()[:8]


def _format(kind: str, number: str) -> str:
    if kind in ("GPU", "MIG"):
        return f"{kind}-{number:0>8}-0000-0000-0000-000000000000"
    if kind == "uuid":
        return f"00000000-0000-0000-0000-{number:0>12}"
    return f"{kind}-{number}"


# -- finding ---------------------------------------------------------------------------------

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
# Repetitions are bounded, so that no text, however made, takes more than its length in time.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,9}}"
_GPU_UUID = re.compile(rf"(?<![A-Za-z0-9])(GPU|MIG)-({_UUID})(?![A-Za-z0-9-])")
_GPU_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{1,12}){0,4}(?![A-Za-z0-9-])"
)
"""CUDA takes the beginning of a UUID for the whole, as in CUDA_VISIBLE_DEVICES=GPU-8932f937."""
_ANY_UUID = re.compile(rf"(?<![A-Za-z0-9])(?<!GPU-)(?<!MIG-){_UUID}(?![A-Za-z0-9-])")
_HEX_ID = re.compile(r"(?<![A-Za-z0-9])(?<!sha256:)(?:[0-9a-f]{64}|[0-9a-f]{32})(?![A-Za-z0-9])")
"""Container ids and machine ids; a digest of an image says nothing of the machine."""
_MAC = re.compile(
    r"(?<![0-9A-Za-z:.-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4,18}[0-9A-Fa-f]{2}"
    r"(?![0-9A-Za-z:-])"
)
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%\w+)?(?![\w:]|\.\d)")
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w]|\.\d)", re.ASCII)
_VERSION_BEFORE = re.compile(
    r"(?:[=<>~!]=|[<>]|\bversion[\s:=\"']*"
    r"|(?:cu|nv|tensorrt|nccl|npp)[\w.+]*[-_ =/@:(]+|\blib[\w+]*[-_.=]+)\Z",
    re.IGNORECASE,
)
_VERSION_AFTER = re.compile(
    r"\.(?:dist|egg)-info|\.(?:tar|whl|zip|conda|deb|rpm)\b|\+[a-z]|-[A-Za-z]|-\d+(?![\d.])"
)
_EMAIL = re.compile(
    r"(?<![\w.+-])([\w.+-]{1,100})@((?:[A-Za-z0-9-]{1,63}\.){1,9}([A-Za-z]{2,63}))(?![\w-])"
)
_NOT_A_DOMAIN = re.compile(
    r"service|socket|target|timer|slice|scope|mount|device|path|conf|so|json|py|whl", re.IGNORECASE
)
_LOGIN = re.compile(
    r"://(?:[^\s/@,;\"'<>]{1,500}|[^\s/@:,;\"'<>]{1,100}:(?!\d+(?:/|\Z))[^\s@,;\"'<>]{1,400})@"
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:hf_|gh[opsu]_|github_pat_|glpat-|nvapi-|sk-|xox[abp]-|AKIA)[\w-]{8,}"
    r"|eyJ[\w-]{8,}\.[\w.-]+)"
)
_NAMED_TOKEN = re.compile(
    r"(?:token|secret|passw(?:or)?d|passphrase|api[-_]?key|access[-_]?key|signature|[?&]sig)="
    r"[\"']?([^\s&;,\"']{6,})",
    re.IGNORECASE,
)
_URL_HOST = re.compile(rf"://(?:[^\s/@]{{0,500}}@)?({_HOST})(?![A-Za-z0-9.-]{{0,260}}@)")
_SITE_HOST = re.compile(
    rf"(?<![\w.-])(?=[A-Za-z-]{{0,62}}\d)({_HOST}\.(?:internal|local|lan|corp|intranet))(?![\w-])"
    r"|(?<![\w.-])(ip-\d{1,3}(?:-\d{1,3}){3})(?!\w)"
)
_HOMES = (
    re.compile(r"(?:(?<=/home/)|(?<=/Users/)|(?<=/users/))([^/\s:;,'\"()\[\]{}<>|*?\\]+)"),
    re.compile(r"\\[Uu]sers\\+([^\\/:*?\"<>|\r\n]+)(?=\\)"),
    re.compile(r"\\[Uu]sers\\+([^\\/:*?\"<>|\s;,'()\[\]{}]+)"),
    re.compile(r"(?<![\w/.~-])~([A-Za-z_][\w.-]*)(?=/)"),
)
_USER_KEYS = ("user", "requested_by")


class _Search:
    """Every secret of one snapshot, as the texts to replace and what stands for them."""

    def __init__(self, snapshot: Snapshot, names: _Names, users: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._names = names
        self._users = users
        self._literals: dict[str, tuple[int, str]] = {}
        self._seen: set[str] = set()
        self._texts = list(dict.fromkeys(_texts(snapshot)))
        self._versions = _versions(snapshot)
        self._words = _words(snapshot)

    def whole(self, kind: str, value: Value | None) -> str:
        """What stands for a value that is a secret as a whole; empty where it is none."""
        if not kind or isinstance(value, bool) or not isinstance(value, (str, int)):
            return ""
        text = str(value)
        if kind == "serial" and not re.fullmatch(r"(?=[^\d]*\d)[\w-]{5,}", text):
            return ""  # 0, N/A and the like are no serial numbers
        if not text or _fold(text) in NOBODY:
            return ""
        if _fold(text) in self._literals:
            return self._literals[_fold(text)][1]
        if kind == "GPU":
            found = _GPU_UUID.fullmatch(text)
            kind = found[1] if found else kind
        return self._names.of(kind, text)

    def found(self) -> Mapping[str, tuple[int, str]]:
        """Each text to replace: how much of its beginning stays, and what stands for the rest."""
        # GPU UUIDs go before other UUIDs, logins before the hosts behind them, and what a fact
        # says is a host before what looks like one.
        self._logins()
        self._uuids()
        self._told()
        self._addresses()
        self._mails()
        self._homes()
        self._hosts()
        return self._literals

    def _add(self, literal: str, replacement: str, before: str = "") -> None:
        self._literals.setdefault(_fold(before + literal), (len(before), replacement))

    def _each(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for text in self._texts:
            yield from pattern.finditer(text)

    def _logins(self) -> None:
        for found in self._each(_LOGIN):
            self._add(found[0], "://")
            _, _, password = found[0][3:-1].partition(":")
            if len(password) >= 6:
                self._add(password, "***")
        for found in self._each(_TOKEN):
            self._add(found[0], "***")
        for found in self._each(_NAMED_TOKEN):
            if any(c.isdigit() for c in found[1]):
                self._add(found[1], "***")

    def _uuids(self) -> None:
        whole: dict[str, str] = {}
        for found in self._each(_GPU_UUID):
            name = self._names.of(found[1], found[0])
            whole[_fold(found[0])] = name
            self._add(found[0], name)
            self._add(found[2], name[4:])
        for found in self._each(_GPU_PREFIX):
            beginning = _fold(found[0])
            if beginning not in whole:
                known = {name for uuid, name in whole.items() if uuid.startswith(beginning)}
                name = known.pop() if len(known) == 1 else self._names.of(found[1], found[0])
                self._add(found[0], name[: len(found[0])])
        for found in self._each(_ANY_UUID):
            if _fold(found[0]) not in PUBLIC_UUIDS:
                self._add(found[0], self._names.of("uuid", found[0]))
        for found in self._each(_HEX_ID):
            if len(set(found[0])) > 2:
                self._add(found[0], self._names.of("id", found[0]))

    def _told(self) -> None:
        """Secrets that the snapshot itself says are some."""
        snapshot = self._snapshot
        told = [(_kind_of(name), fact.value) for name, fact in sorted(snapshot.facts.items())]
        told += [(kind, snapshot.host.get(key, "")) for key, kind in _HOST_KEYS.items()]
        told += [("user", user) for user in self._users]
        for transaction in snapshot.transactions:
            for key in _USER_KEYS:
                found = re.match(r"\s*([^\s(]+)", str(transaction.get(key, "")))
                if found and not found[1].isdigit():
                    told.append(("user", found[1]))
        for kind, value in told:
            name = self.whole(kind, value)
            if not name:
                continue
            text = str(value)
            if kind == "host":
                self._host(text)
            elif kind == "user":
                self._user(text)
            elif kind == "serial" or len(text) >= 8:
                self._add(text, name)

    def _addresses(self) -> None:
        for found in self._each(_MAC):
            if len(set(found[0]) - set(":-")) > 1:
                self._add(found[0], self._names.of("mac", found[0]))
        for text in self._texts:
            for found in _IPV4.finditer(text):
                if not self._is_version(found, text) and not _says_nothing(found[0]):
                    self._add(found[0], self._names.of("ip", found[0]))
        for found in self._each(_IPV6):
            if not _says_nothing(found[0]):
                self._add(found[0], self._names.of("ip", found[0]))

    def _is_version(self, found: re.Match[str], text: str) -> bool:
        """Whether four numbers are a version, as 9.10.2.21 of cuDNN is, and no address."""
        return (
            found[0] in self._versions
            or _VERSION_BEFORE.search(text[max(0, found.start() - 60) : found.start()]) is not None
            or _VERSION_AFTER.match(text, found.end()) is not None
        )

    def _mails(self) -> None:
        for found in self._each(_EMAIL):
            if found[1] != "git" and not _NOT_A_DOMAIN.fullmatch(found[3]):
                self._add(found[0], self._names.of("email", found[0]))

    def _homes(self) -> None:
        for pattern in _HOMES:
            for found in self._each(pattern):
                self._user(found[1].rstrip(".").strip())

    def _user(self, user: str) -> None:
        if not user or _fold(user) in NOBODY:
            return
        name = self._names.of("user", user)
        if self._tells(user):
            self._add(user, name)
            return
        for before in ("/home/", "/users/", "\\users\\"):
            self._add(user, name, before)
        self._add(f"{user}/", f"{name}/", "~")
        self._add(f"{user}@", f"{name}@")

    def _hosts(self) -> None:
        for found in self._each(_URL_HOST):
            self._host(found[1])
        for found in self._each(_SITE_HOST):
            self._host(found[1] or found[2])
        for name, fact in sorted(self._snapshot.facts.items()):
            if name == "container.image" and isinstance(fact.value, str):
                registry, slash, _ = fact.value.partition("/")
                if slash and re.search(r"[.:]", registry):
                    self._host(registry.partition(":")[0])

    def _host(self, host: str) -> None:
        """Hide a host under all its names: with its domain, without, and the domain itself."""
        host = host.strip(".")
        short, _, domain = host.partition(".")
        if (
            _fold(host) in NOBODY
            or _is_public(host)
            or host.isdigit()
            or _IPV4.fullmatch(host)
            or not self._first(host)
        ):
            return
        name = self._names.of("host", host)
        if domain:
            self._add(host, name)
            if self._tells(short) and any(c.isdigit() for c in short):
                self._add(short, name)
            if "." in domain and not _is_public(domain):
                self._domain(domain)
        elif self._tells(host):
            self._add(host, name)
            pattern = re.compile(
                rf"(?<![\w.-]){re.escape(host)}\.((?:{_LABEL}\.){{1,9}}[A-Za-z]{{2,}})"
            )
            for found in self._each(pattern):
                self._add(found[0], name)
                if not _is_public(found[1]):
                    self._domain(found[1])
        else:
            for before in ("@", "://"):
                self._add(host, name, before)

    def _first(self, name: str) -> bool:
        """Whether a host or domain is met for the first time: each is looked for once."""
        if not name or _fold(name) in self._seen:
            return False
        self._seen.add(_fold(name))
        return True

    def _domain(self, domain: str) -> None:
        if not self._first(f".{domain}"):
            return
        self._add(domain, self._names.of("domain", domain))
        pattern = re.compile(rf"(?<![\w.-])(?:{_LABEL}\.){{1,9}}{re.escape(domain)}(?![\w-])", re.I)
        for found in self._each(pattern):
            self._add(found[0], self._names.of("host", found[0]))

    def _tells(self, name: str) -> bool:
        """Whether a word standing alone can only mean this name."""
        return len(name) >= 3 and not name.isdigit() and _fold(name) not in self._words


def _is_public(host: str) -> bool:
    parts = _fold(host).split(".")
    return any(".".join(parts[at:]) in PUBLIC_HOSTS for at in range(len(parts)))


def _says_nothing(address: str) -> bool:
    """Whether an address is none, or one that every machine has: loopback, netmasks."""
    import ipaddress

    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return True
    return parsed.is_loopback or parsed.is_unspecified or address.startswith("255.")


def _texts(snapshot: Snapshot) -> Iterator[str]:
    """Every text of a snapshot, in an order that does not depend on how it was put together."""
    for name, fact in sorted(snapshot.facts.items()):
        # Without the last part, the field: /home/alice in host.disk./home/alice.free_ratio.
        yield name.rpartition(".")[0]
        if not _is_version_fact(name):
            yield from _strings(fact.value)
        yield fact.source
    for mapping in (snapshot.host, snapshot.target, snapshot.tool, *snapshot.transactions):
        yield from _strings(dict(mapping))
    yield snapshot.label or ""
    for run in snapshot.probes:
        yield from (run.name, run.detail, *run.provides)
        for gap, reason in sorted(run.gaps.items()):
            yield from (gap.rpartition(".")[0], reason)


def _strings(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in sorted(value.items()):
            yield key
            yield from _strings(item)


def _is_version_fact(name: str) -> bool:
    spec = spec_of(name)
    return spec.kind == "version" if spec is not None else name.endswith(".version")


_FACTS_OF_VERSIONS = (
    *("kernel.release", "kernel.installed", "kernel.default", "*.kernels"),
    *("dist.all", "dist.duplicates", "python.conflicts", "cuda.toolkits"),
    *("*.installs", "*.copies"),
)
"""Facts of another kind than version that hold versions all the same."""


def _versions(snapshot: Snapshot) -> frozenset[str]:
    """Everything of the form of an IPv4 address that is a version somewhere in the snapshot."""
    found: set[str] = set()
    for name, fact in snapshot.facts.items():
        if _is_version_fact(name) or any(covers(p, name) for p in _FACTS_OF_VERSIONS):
            for text in _strings(fact.value):
                found.update(_IPV4.findall(text))
    return frozenset(found)


_DESCRIBING = ("gpu.*.name", "os.*", "host.cpu.*", "firmware.*")


def _words(snapshot: Snapshot) -> frozenset[str]:
    """Words that mean something else in this snapshot than a person or a machine."""
    texts: list[str] = [spec.pattern for spec in CATALOGUE]
    for name, fact in snapshot.facts.items():
        if "/" not in name:  # a path in a name may well hold a secret
            texts.append(name)
        if any(covers(pattern, name) for pattern in _DESCRIBING):
            texts.extend(_strings(fact.value))
    words = {word for text in texts for word in re.split(r"[^A-Za-z0-9]+", _fold(text))}
    return frozenset(words | NOBODY)


# -- replacing -------------------------------------------------------------------------------


class _Hider:
    """Replaces all secrets in one go, so that no replacement is replaced again."""

    def __init__(self, literals: Mapping[str, tuple[int, str]]) -> None:
        self._literals = literals
        longest_first = sorted(literals, key=lambda literal: (-len(literal), literal))
        self._pattern = (
            re.compile("|".join(map(_bounded, longest_first)), re.IGNORECASE | re.ASCII)
            if longest_first
            else None
        )

    def text(self, text: str) -> str:
        """A text without the secrets."""
        if self._pattern is None:
            return text
        return self._pattern.sub(self._instead, text)

    def _instead(self, found: re.Match[str]) -> str:
        stays, replacement = self._literals[_fold(found[0])]
        return found[0][:stays] + replacement

    def value(self, value: Value) -> Value:
        """A value without the secrets, in its texts and its keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return self.values(value)
        return value

    def values(self, mapping: Mapping[str, Value]) -> dict[str, Value]:
        """The same for what a mapping holds."""
        return {self.text(key): self.value(item) for key, item in sorted(mapping.items())}

    def run(self, run: ProbeRun) -> ProbeRun:
        """The same for how a probe went."""
        return run._replace(
            detail=self.text(run.detail),
            provides=self._all(run.provides),
            gaps={self.text(gap): self.text(reason) for gap, reason in run.gaps.items()},
        )

    def _all(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)


def _bounded(literal: str) -> str:
    """A pattern for the literal as a word of its own."""
    before = "(?<![A-Za-z0-9])" if literal[0].isalnum() else ""
    after = "(?![A-Za-z0-9])" if literal[-1].isalnum() else ""
    if _IPV4.fullmatch(literal):  # no part of a longer row of numbers
        before, after = r"(?<![A-Za-z0-9])(?<!\d\.)", r"(?![A-Za-z0-9]|\.\d)"
    return f"{before}{re.escape(literal)}{after}"

"""Secrets that are told by their place in a command line, a file, a query or beside the name of a user."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from dataclasses import dataclass

from vestige.cognition.secrets.assignments import Found
from vestige.cognition.secrets.entropy import looks_random
from vestige.cognition.secrets.values import (
    is_key,
    is_mixed_password,
    is_password,
    is_placeholder,
    is_strong_password,
    is_token,
)

_ARGUMENT = re.compile(r"[a-z_]{1,20}=")
"""The next argument of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPlace:
    """Where a command line or a file has a password. One of the hints occurs there; where it could as well be
    something else, only a `strong` password counts, or one that is `mixed` of letters and digits; where it
    is `certain`, anything."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    strong: bool = False
    mixed: bool = False
    certain: bool = False

    def holds(self, value: str) -> bool:
        """Whether what stands there is a password."""
        if value.count("|") > 1 or _ARGUMENT.match(value):
            return False
        if self.certain:
            return not is_placeholder(value)
        if is_strong_password(value):
            return True
        if self.mixed:
            return is_mixed_password(value)
        return not self.strong and is_password(value, quoted=False, named=True)


def _place(
    hints: str, pattern: str, *, strong: bool = False, mixed: bool = False, certain: bool = False
) -> PasswordPlace:
    found = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    return PasswordPlace(
        hints=tuple(hints.split()), pattern=found, strong=strong, mixed=mixed, certain=certain
    )


_WORD = r"[\"']?(?P<secret>[^\s\"'`-][^\s\"'`]{3,127})"
_DIRECTIVE = (
    r"(?:requirepass|masterauth|rootpw|bindpw|rpcpassword|remote_password|insecure-password|auth_pass"
    r"|wpa_passphrase|smtp_sasl_password|proxy_password|vnc_password)"
)
_DIRECTIVES = "requirepass masterauth rootpw bindpw password auth_pass wpa_passphrase"
_HOST = r"(?<![\w.*:/-])(?:(?:[\w-]{1,63}\.){1,6}[\w-]{1,63}|localhost|\*)"
_PGPASS = rf"{_HOST}:(?:\d{{3,5}}|\*):(?:[a-z][\w-]{{0,62}}|\*):(?:[a-z][\w.-]{{0,62}}|\*):{_WORD}"
_DEFAULTS = (
    # Terraform
    rf"\bvariable\s{{1,4}}\"[\w-]{{0,60}}NAME\"\s{{0,4}}\{{[^{{}}]{{0,400}}?"
    rf"\bdefault\s{{0,20}}=\s{{0,4}}(?=\"){_WORD}",
    # An option of a program
    rf"\(\s{{0,20}}[\"']-{{1,2}}[\w-]{{0,40}}NAME[\"'][^()]{{0,300}}?\bdefault\s?=\s?(?=[\"']){_WORD}",
    # A parameter of CloudFormation: lines that are indented alike
    r"NAME:(?P<indent>\n[ \t]{1,20})(?:\S[^\n]{0,200}(?P=indent)(?=\S)){0,6}default:[ \t]{1,4}" + _WORD,
)
"""How a variable whose name ends with NAME is given what it is when nobody sets it."""
_PLACES = (
    _place("-u --user", rf"(?:^|\s)(?:-u|--user|--proxy-user)[= ]?[\"']?[\w.@+-]{{1,64}}:{_WORD}"),
    _place("sshpass", rf"\bsshpass\s{{1,4}}-p\s?{_WORD}"),
    _place("mysql mariadb", rf"\b(?:mysql|mariadb)\w{{0,8}}\b[^\n]{{0,80}}?\s-p{_WORD}"),
    _place(
        "docker podman helm mongo ldapsearch",
        rf"\b(?:docker|podman|helm|mongo\w{{0,8}}|ldapsearch)\b[^\n]{{0,80}}?\s-[pw]\s{_WORD}",
        strong=True,
    ),
    _place("redis-cli", rf"\bredis-cli\b[^\n]{{0,80}}?\s-a\s?{_WORD}"),
    _place(
        "az sqlcmd bcp psexec plink pscp rdesktop lftp kinit vncpasswd isql smbclient ncftp svn",
        r"\b(?:az|sqlcmd|bcp|psexec|plink|pscp|rdesktop|isql|ncftp\w{0,4}|svn)\b[^\n]{0,80}?\s-(?:pw?|P)\s?"
        rf"{_WORD}",
    ),
    _place(
        "lftp smbclient", rf"\b(?:lftp|smbclient)\b[^\n]{{0,80}}?\s-[uU]\s?[\"']?[\w.\\]{{1,40}}[,%]{_WORD}"
    ),
    _place("xfreerdp", rf"\bxfreerdp\b[^\n]{{0,80}}?\s/p:{_WORD}"),
    _place("openssl", rf"\bopenssl\b[^\n]{{0,80}}?\s-[kK]\s{_WORD}"),
    _place("htpasswd", rf"\bhtpasswd\s-\w{{0,4}}b\w{{0,4}}\s\S{{1,80}}\s\S{{1,40}}\s{_WORD}"),
    _place(
        "chpasswd", r"\becho\s[\"']?[\w.-]{1,40}:(?P<secret>[^\s\"']{4,64})[\"']?\s?\|[^\n]{0,20}chpasswd"
    ),
    _place(
        "sudo passwd",
        r"\becho\s[\"']?(?P<secret>[^\s\"'|]{4,64})[\"']?\s?\|\s?(?:sudo\s-\w{0,3}S|passwd|su\b)",
    ),
    _place("net user", rf"\bnet user\s\S{{1,40}}\s{_WORD}"),
    _place(
        "secret password key community",
        r"^[ \t]{0,4}(?:enable|username\s\S{1,40}|tacacs-server|radius-server|snmp-server|neighbor\s\S{1,40}"
        r"|ppp|ip\s\S{1,20})\b[^\n]{0,60}?\s(?:secret|password|key|community)\s(?:\d\s)?(?P<secret>[^\s\"']{5,64})",
    ),
    _place("community", rf"\bcommunity(?:\s(?:string|name))?(?:\s(?:is|=)\s|\s?[:=]\s?){_WORD}", strong=True),
    _place("jdbc:oracle", r"\bjdbc:oracle:\w{1,8}:\w{1,40}/(?P<secret>[^\s@\"'/]{4,64})@"),
    _place(
        "pass pwd",
        r"(?:\b(?:user(?:name)?|uid|user\sid|host|server|dbname|database|login|email|log|usr)\s?=[^\n(]{1,120}?"
        r"|://[^\s\"'?]{1,200}\?(?:[^\s\"'?]{1,200}?&)?)(?<=[\s;&?])(?:password|passwd|pwd|pass)="
        r"(?P<secret>[^\s\"'&;,)]{4,128})",
    ),
    _place("pass:", rf"\bpass:{_WORD}"),
    _place("identified", rf"\bidentified\s{{1,4}}(?:with\s\w{{1,40}}\s)?by\s{{1,4}}(?=[\"']){_WORD}"),
    _place("-generic-password", rf"\badd-generic-password\b[^\n]{{0,80}}?\s-w\s{_WORD}"),
    _place("net use", rf"\bnet use\b[^\n]{{0,80}}?\s/user:\S{{1,64}}\s{_WORD}"),
    _place("storepass keypass", rf"\s-{{1,2}}\w{{0,16}}(?:store|key)pass\s{_WORD}"),
    _place(
        "wpa wifi wi-fi wlan",
        r"\b(?:wpa[23]?|wi-?fi|wlan|network)[ -](?:key|schlüssel|pass\w{0,6}|psk)\b[^\n\d]{0,40}?"
        r"(?P<secret>\d{8,26})(?!\w)",
        certain=True,
    ),
    _place("wifi:", rf"\bWIFI:[^\n]{{0,80}}?\bP:{_WORD}"),
    _place("7z zip rar", rf"\b(?:7z[ar]?|zip|unzip|rar|unrar)\s(?:[^\n]{{0,80}}?\s)?-p\s?{_WORD}"),
    _place("mosquitto", rf"\bmosquitto_\w{{2,4}}\b[^\n]{{0,80}}?\s(?-i:-P)\s{_WORD}"),
    _place("community", rf"\br[ow]community6?\s{_WORD}"),
    _place(
        "log sign",
        rf"\b(?:log|logged|sign|signed)\s?in\b[^\n]{{0,40}}?\bas\s\S{{1,40}}\s(?:with|and|using|mit)\s{_WORD}",
    ),
    _place(
        "log sign",
        rf"\b(?:log|logged|sign|signed)\s?in\b[^\n]{{0,60}}?\swith\s\S{{1,40}}\sand\s{_WORD}",
        strong=True,
    ),
    _place("securestring", rf"\bConvertTo-SecureString\s{_WORD}"),
    _place(".login(", rf"\.login\(\s?[\"'][^\"'\n]{{1,100}}[\"'],\s?{_WORD}"),
    _place("sqlplus", r"\bsqlplus\s(?:-\w\s){0,3}[\"']?\w{1,40}/(?P<secret>[^\s@\"'/]{4,64})@"),
    _place(
        "pass pw pin",
        r"(?:^|\s)[\"']?(?P<secret>[^\s\"']{7,64})[\"']?\s(?:as|for)\s"
        r"(?:(?:the|my|a|its|your)\s)?(?:password|pass|pw)\b",
        strong=True,
    ),
    _place(
        "with using mit avec",
        r"\b(?:(?:un)?lock(?:s|ed)?|decrypt(?:s|ed)?|protected|encrypted|opens?|opened|entsperren|verschlüsselt"
        rf"|geschützt|protégé|unzip(?:ped)?|extract(?:ed)?)\b[^\n]{{0,40}}?\s(?:with|using|mit|avec|con)\s{_WORD}",
        strong=True,
    ),
    _place(
        "(",
        r"\b(?:HTTPBasicAuth|WiFi\.begin|createHmac|jwt\.(?:encode|sign|verify|decode)|auth\s?=\s?|basic_?auth|hmac\.new"
        r"|setBasicAuth|PlainAuth|\.connect|\.sign|login)\((?:[^()\n]{0,80}?,\s?)?b?"
        r"[\"'](?P<secret>[^\s\"']{6,128})[\"'](?=\s?[,)])",
        mixed=True,
    ),
    _place("aes.new", rf"\bAES\.new\(b?{_WORD}", strong=True),
    _place("@", r"(?<![\w/.:@-])[\w.-]{2,40}:(?P<secret>[^\s@:/\"']{6,128})@[\w-]{1,63}[.:]\w", strong=True),
    _place(
        "pass pw key kennwort code",
        r"\b(?:password|passwort|kennwort|passphrase|pass|pw|key|code)\b[^\n]{1,40}?"
        rf"\b(?:it['’]?s|it\sis|says|reads|namely|nämlich)\s(?:now\s|actually\s)?{_WORD}",
        mixed=True,
    ),
    _place(
        "@",
        rf"(?:^|\s)[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{2,63}}){{1,4}}(?:[:|;]|\s[/|:]\s|/){_WORD}",
        mixed=True,
    ),
    _place(
        "admin root guest deploy ubuntu postgres operator",
        r"(?<![\w.@/:-])(?:admin|root|administrator|guest|deploy|ubuntu|postgres|sysadmin|operator)"
        rf"(?:\s?/\s?|:\s?|\sand\s|\s?\|\s?){_WORD}",
        strong=True,
    ),
    _place(
        "wifi wi-fi wlan vpn ssh ftp imap smtp pop3 account konto cuenta compte login cred access zugang "
        "router nas panel dashboard",
        r"\b(?:wi-?fi|wlan|vpn|ssh|s?ftps?|imap|smtp|pop3|account|konto|cuenta|compte|login|creds?|credentials"
        r"|access|zugang|zugangsdaten|router|nas|panel|dashboard)\b[^\n]{0,60}?"
        rf"(?:(?<=\w)\s[/|]\s|(?<=[a-z0-9]),\s|(?<=\s)[a-z]{{2,20}}:){_WORD}(?=[\"'.]?(?:\s|$))",
        mixed=True,
    ),
    _place(":5432: :*: pgpass", rf"^{_PGPASS}$"),
    _place(":", _PGPASS, mixed=True),
    _place(
        _DIRECTIVES,
        rf"^[ \t]{{0,8}}(?:user\s\S{{1,40}}\s)?{_DIRECTIVE}[ \t]{{1,8}}{_WORD}[\"']?[ \t]{{0,8}}$",
    ),
    _place(_DIRECTIVES, rf"\b{_DIRECTIVE}\s{{1,4}}(?=\S{{0,60}}\d){_WORD}", mixed=True),
    _place("auth", rf"\bstats\sauth\s[\w.-]{{1,40}}:{_WORD}"),
    _place("user", rf"\buser\s\S{{1,40}}\s(?:on|off)\s(?:[^\s>]{{1,40}}\s){{0,6}}>{_WORD}"),
    _place("psk xauth eap", r":\s?(?:PSK|XAUTH|EAP)\s\"(?P<secret>[^\"\n]{6,64})\"", certain=True),
    *(_place("default", form.replace("NAME", r"(?:pass(?:word|wd|phrase)?|pwd)")) for form in _DEFAULTS),
    *(
        _place(
            "default", form.replace("NAME", r"(?:secret|token|(?:api|access|private)[_-]?key)"), mixed=True
        )
        for form in _DEFAULTS
    ),
    _place(
        "login basic cred log sign anmeldung zugang identifiants acceso",
        r"\b(?:log ?in|basic auth|creds?|credentials|sign ?in|anmeldung|zugang|zugangsdaten"
        rf"|identifiants|acceso)\b[^\n]{{0,40}}?(?<![\w:.])[\w.@+-]{{2,64}}\s?[/:|]\s?{_WORD}",
        strong=True,
    ),
)


_QUERY = re.compile(
    r"[?&](?:code|otp|auth|key|k|t|hash|invite|magic|ticket|sso|sid|jwt|sig|signature|secret|api_?key|token|pin"
    r"|access_token|id_token|private_token|auth_?token|invitation|reset|verify|confirmation|session)="
    r"(?P<secret>[\w.~%+/-]{4,2048})=*",
    re.IGNORECASE,
)
_ONCE = re.compile(r"[?&](?:otp|pin)=\d{4,8}$", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f-]+$")
_OPTION = re.compile(r"\s-[a-zA-Z]\s(?P<secret>[A-Za-z0-9_.=+/-]{24,400})(?!\S)")


def commands(text: str) -> Iterator[Found]:
    """Passwords on a command line, and pairs of a user and a password."""
    plain = text.casefold()
    for place in _PLACES:
        if not any(hint in plain for hint in place.hints):
            continue
        for found in place.pattern.finditer(text):
            start = found.start("secret")
            value = found["secret"].rstrip(".,;)")
            if place.holds(value):
                yield "password", start, start + len(value), "is given as a password"


def queries(text: str) -> Iterator[Found]:
    """What opens a page to whoever has its address."""
    for found in _QUERY.finditer(text):
        if is_key(found["secret"]) or _ONCE.match(found.group()):
            yield "key in a URL", *found.span("secret"), "stands in the query of a URL"


def options(text: str) -> Iterator[Found]:
    """Random strings given to a short option of a command."""
    for found in _OPTION.finditer(text):
        value = found["secret"]
        if is_key(value) and not _HASH.match(value) and "/" not in value:
            yield "key", *found.span("secret"), "is given to a command"


# -- Secrets that are told by their place in the address of a URL or in a header.

HEADER_HINTS = ("bearer", "basic", "auth", "cookie", "authorization")
_URL = re.compile(r"://(?:(?!://)[^\s\"'<>`])+")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
_BEARER = re.compile(r"\bbearer\s{1,4}\\?[\"']?(?P<secret>[A-Za-z0-9._~+/=|:-]{12,4096})", re.IGNORECASE)
_BASIC = re.compile(
    r"\b(?:basic\s{1,4}|auth\\?[\"']\s?:\s?)\\?[\"']?(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})", re.IGNORECASE
)
_SCHEME = re.compile(
    r"\bauthorization\\?[\"']?\s?[:=]\s{0,2}\\?[\"']?[A-Za-z][\w-]{1,20}\s{1,2}"
    r"(?P<secret>[\w.~+/=-]{16,1024})",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"\bcookies?2?\b[^\n:={(]{0,40}[:=]\s?\\?[\"']?(?P<pairs>[^\n\"']{8,4096})", re.IGNORECASE
)
_PAIR = re.compile(r"[\w.$!%-]{1,64}=(?P<secret>[^;\s\\]{12,2048})")


def addresses(text: str) -> Iterator[Found]:
    """Passwords in the authority of a URL: scheme://user:password@host."""
    for found in _URL.finditer(text):
        userinfo, at, host = found.group()[3:].rpartition("@")
        user, colon, password = userinfo.partition(":")
        begin = found.start() + 3
        if at and host and is_key(user):
            yield "token in a URL", begin, begin + len(userinfo), "stands before the host of a URL"
            continue
        if not (at and colon and host and password) or "/" in user or _PORT.match(password):
            continue
        start = begin + len(user) + 1
        if not is_placeholder(password) and password != user and len(password) > 2:
            yield "password in a URL", start, start + len(password), "stands before the host of a URL"


def headers(text: str) -> Iterator[Found]:
    """What stands in headers that authorise: bearer tokens, basic authentication, cookies."""
    for found in _BEARER.finditer(text):
        start, end = found.span("secret")
        end -= text[start:end].endswith(".")
        if is_token(text[start:end], quoted=False):
            yield "bearer token", start, end, "follows `bearer`"
    for found in _SCHEME.finditer(text):
        if is_token(found["secret"], quoted=False):
            yield "authorization", *found.span("secret"), "stands in an authorization header"
    for found in _BASIC.finditer(text):
        if _is_basic(found["secret"]):
            yield "basic authentication", *found.span("secret"), "follows `basic`"
    for found in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *found.span("pairs")):
            if looks_random(pair["secret"]) and not is_placeholder(pair["secret"]):
                yield "cookie", *pair.span("secret"), "is the value of a cookie"


def _is_basic(encoded: str) -> bool:
    """Whether this is the base64 of user:password."""
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (Error, UnicodeDecodeError):
        return False
    _, colon, password = decoded.partition(":")
    return bool(colon and password) and decoded.isprintable() and not is_placeholder(password)

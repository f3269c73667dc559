"""Headers by which a request says where it is at home: they can only take from what its key may reach."""

from dataclasses import replace

from starlette.datastructures import Headers

from vestige.callers import Caller
from vestige.checks import check_label
from vestige.errors import Forbidden, InvalidInput
from vestige.models import Access, covers, normal_scope, scope_filter

SCOPE_HEADER = "X-Vestige-Scope"
DOMAIN_HEADER = "X-Vestige-Domain"


def narrowed(caller: Caller, headers: Headers) -> Caller:
    """The caller within the scope and the domain that the headers name; Forbidden outside of his reach."""
    scope, domain = _one(headers, SCOPE_HEADER), _one(headers, DOMAIN_HEADER)
    reach = caller.access
    if scope is not None:
        check_label(SCOPE_HEADER, scope)
        scope = normal_scope(scope)
        if reach.scopes is not None and not any(covers(one, scope) for one in reach.scopes):
            raise _outside("scope", SCOPE_HEADER)
        reach = Access(scopes=scope_filter((scope,)), domains=reach.domains)
        caller = replace(caller, scope=scope)
    if domain is not None:
        check_label(DOMAIN_HEADER, domain)
        if reach.domains is not None and domain not in reach.domains:
            raise _outside("domain", DOMAIN_HEADER)
        reach = Access(scopes=reach.scopes, domains=(domain,))
    return replace(caller, access=reach)


def _outside(what: str, header: str) -> Forbidden:
    return Forbidden(
        f"Your key does not reach this {what}.",
        hint=f"Name a {what} within the reach of the key in {header}, or leave it out.",
        details={"header": header},
    )


def _one(headers: Headers, name: str) -> str | None:
    given = headers.getlist(name)
    if len(given) > 1:
        raise InvalidInput(f"The header {name} is there more than once.", details={"header": name})
    if not given:
        return None
    try:
        # Header values are bytes; ours are UTF-8, which the framework reads as Latin-1.
        return given[0].encode("latin-1").decode("utf-8").strip()
    except UnicodeError as exc:
        raise InvalidInput(f"The header {name} is not UTF-8.", details={"header": name}) from exc

"""The errors a user is meant to read: one sentence that says what is wrong, where, and how to mend it."""


class PerdureError(Exception):
    """A run that failed for a reason the user can act on. The command line prints the message and exits with 1."""

    exit_code = 1


class InputError(PerdureError):
    """Something the user gave is wrong (a file, a setting, a name). The command line exits with 2."""

    exit_code = 2


def nearest(name: str, known: list[str]) -> str:
    """The sentence part that proposes the closest known name, or lists all when none is close."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(known))}."

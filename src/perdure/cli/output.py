"""What the verbs print on: results on the output stream, progress and errors on the error stream.

Names, questions and answers come from users and models, so nothing printed is read as markup; style is given by :class:`Text`.
"""

from rich.console import Console
from rich.text import Text

out = Console(soft_wrap=True, highlight=False, markup=False)
err = Console(stderr=True, highlight=False, markup=False)


def next_step(command: str, why: str) -> None:
    """The last line of a verb: what to do next, and why."""
    out.print(Text.assemble(("Next: ", "dim"), (command, "bold"), (f"  ({why})", "dim")))

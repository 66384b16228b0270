"""perdure: measure and stop forgetting in language models that keep learning.

The names below are loaded when first used, so that ``import perdure`` and ``perdure --help`` stay quick.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.errors import InputError, PerdureError
    from perdure.learning.learner import Learner
    from perdure.models.loading import load_model
    from perdure.retention.matrix import RetentionMatrix
    from perdure.retention.measures import summary
    from perdure.settings import LearnerSettings
    from perdure.tasks import Item, Task, TaskStream, read_jsonl, symbol_stream

__version__ = version("perdure")

_HOMES = {
    "InputError": "perdure.errors",
    "Item": "perdure.tasks",
    "Learner": "perdure.learning.learner",
    "LearnerSettings": "perdure.settings",
    "PerdureError": "perdure.errors",
    "RetentionMatrix": "perdure.retention.matrix",
    "Task": "perdure.tasks",
    "TaskStream": "perdure.tasks",
    "load_model": "perdure.models.loading",
    "read_jsonl": "perdure.tasks",
    "summary": "perdure.retention.measures",
    "symbol_stream": "perdure.tasks",
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

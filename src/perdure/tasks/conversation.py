"""What is asked of a chat model, wherever it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Message = dict[str, str]  # {"role": "system" | "user" | "assistant", "content": text}


@dataclass(frozen=True)
class Reply:
    """What a chat model said, and what it cost in tokens read and written."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class ChatModel(Protocol):
    """A model that replies in a chat: a :class:`perdure.tasks.local_model.LocalModel` or a
    :class:`perdure.tasks.endpoint.Endpoint`."""

    name: str

    def reply(self, messages: Sequence[Message], *, max_new_tokens: int, seed: int) -> Reply:
        """What it says next."""
        ...

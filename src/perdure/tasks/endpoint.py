"""A chat model behind an OpenAI-compatible endpoint: OpenAI's own, vLLM, llama.cpp, Ollama, `transformers serve` and others."""

import os
import time
from collections.abc import Sequence
from typing import Any

import httpx2

from perdure.errors import InputError, PerdureError
from perdure.tasks.conversation import Message, Reply

KEY_VARIABLE = "OPENAI_API_KEY"
_TRANSIENT = {408, 409, 429, 500, 502, 503, 504}
_LONGEST_WAIT = 60.0  # seconds between two tries


class Endpoint:
    """``POST URL/chat/completions``.

    Parameters
    ----------
    url: up to and including the version, such as ``http://localhost:8000/v1``. The key is read from the environment variable
        OPENAI_API_KEY; local servers want none.
    model: as the server names it.
    temperature, top_p: of every draw.
    timeout: seconds for one reply. tries: of one request, when the server is busy, fails or can't be reached.
    """

    def __init__(
        self, url: str, model: str, *, temperature: float, top_p: float = 1.0, timeout: float = 300.0, tries: int = 5
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"the endpoint {url!r} is no address; write it out, as in http://localhost:8000/v1.")
        self.name = model
        self._url, self._tries = url.rstrip("/"), tries
        self._sampling = {"temperature": temperature, "top_p": top_p}
        key = os.environ.get(KEY_VARIABLE)
        self._client = httpx2.Client(timeout=timeout, headers={"Authorization": f"Bearer {key}"} if key else {})

    def reply(self, messages: Sequence[Message], *, max_new_tokens: int, seed: int) -> Reply:
        """What the model says next in a chat (:class:`perdure.tasks.conversation.ChatModel`).

        Raises
        ------
        InputError: the server refuses the request, the key or the model. PerdureError: it could not be reached, or its reply
        is no chat completion.
        """
        body = {"model": self.name, "messages": list(messages), "max_tokens": max_new_tokens, "seed": seed, **self._sampling}
        answer = self._post(body)
        try:
            text = answer["choices"][0]["message"]["content"] or ""
            usage = answer.get("usage") or {}
            return Reply(str(text), int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise PerdureError(f"{self._url} replied with no chat completion: {str(answer)[:200]}") from error

    def _post(self, body: dict[str, Any]) -> Any:
        address = f"{self._url}/chat/completions"
        failure, wait = "", 0.0
        for attempt in range(self._tries):
            time.sleep(wait)
            wait = min(2.0**attempt, _LONGEST_WAIT)
            try:
                response = self._client.post(address, json=body)
            except httpx2.TransportError as error:
                failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                continue
            if response.status_code in _TRANSIENT:
                failure = _said(response)
                wait = min(_seconds(response.headers.get("retry-after"), wait), _LONGEST_WAIT)
                continue
            if response.status_code >= 400:
                hint = f"; set {KEY_VARIABLE}" if response.status_code in (401, 403) else "; check the address and the model"
                raise InputError(f"{address} refuses {self.name}: {_said(response)}{hint}.")
            try:
                return response.json()
            except ValueError:
                raise PerdureError(f"{address} replied with no JSON: {response.text[:200]!r}; check the address.") from None
        raise PerdureError(
            f"{address} gave no reply in {self._tries} tries ({failure}); is the server running? Run it again then."
        )


def _said(response: httpx2.Response) -> str:
    return f"{response.status_code} {' '.join(response.text.split())[:200]}".strip()


def _seconds(retry_after: str | None, otherwise: float) -> float:
    """The wait that a server asks for in seconds; it may also name a date, which is not heeded."""
    return float(retry_after) if retry_after and retry_after.isdigit() else otherwise

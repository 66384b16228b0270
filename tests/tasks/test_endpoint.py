import json
import time
from typing import Any

import pytest
from tests.tasks.chat_server import Answer, chat_server, completion

from perdure.errors import InputError, PerdureError
from perdure.tasks.conversation import Reply
from perdure.tasks.endpoint import Endpoint

HELLO = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return waits


def ask(url: str, **options: Any) -> Reply:
    return Endpoint(url, "m", temperature=0.5, **options).reply(HELLO, max_new_tokens=7, seed=3)


def test_a_request_and_its_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(lambda _body: completion("Hi.")) as (url, requests):
        assert ask(url + "/") == Reply("Hi.", 10, 5)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        ask(url)
    (path, headers, body), (_, with_key, _) = requests
    assert path == "/v1/chat/completions"
    assert body == {"model": "m", "messages": HELLO, "max_tokens": 7, "seed": 3, "temperature": 0.5, "top_p": 1.0}
    assert "Authorization" not in headers
    assert with_key["Authorization"] == "Bearer secret"


def test_a_busy_server_is_asked_again(_no_waiting: list[float]) -> None:
    answers: list[Answer] = [(503, {}, "loading"), (429, {"Retry-After": "9"}, "slow down"), completion("Hi.")]
    with chat_server(lambda _body: answers.pop(0)) as (url, requests):
        assert ask(url).text == "Hi."
    assert len(requests) == 3
    assert _no_waiting == [0, 1, 9]


@pytest.mark.parametrize(
    ("answer", "kind", "problem"),
    [
        ((401, {}, "bad key"), InputError, "refuses m: 401 bad key; set OPENAI_API_KEY"),
        (
            (404, {}, '{"error": "no such model"}'),
            InputError,
            'refuses m: 404 {"error": "no such model"}; check the address and the model',
        ),
        ((500, {}, "oops"), PerdureError, "gave no reply in 2 tries (500 oops); is the server running?"),
        ((200, {}, "<html>"), PerdureError, "replied with no JSON: '<html>'; check the address"),
        ((200, {}, "[]"), PerdureError, "replied with no chat completion: []"),
        ((200, {}, json.dumps({"choices": []})), PerdureError, "replied with no chat completion"),
    ],
)
def test_what_a_server_may_do_wrong(answer: Answer, kind: type[PerdureError], problem: str) -> None:
    with chat_server(lambda _body: answer) as (url, _), pytest.raises(PerdureError) as error:
        ask(url, tries=2)
    assert type(error.value) is kind
    assert problem in str(error.value)


def test_nobody_there() -> None:
    with chat_server(lambda _body: completion("")) as (url, _):
        pass
    with pytest.raises(PerdureError, match=r"gave no reply in 2 tries \(ConnectError"):
        ask(url, tries=2)
    with pytest.raises(InputError, match="'localhost:8000' is no address; write it out, as in http://localhost:8000/v1"):
        ask("localhost:8000")

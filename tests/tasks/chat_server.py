"""A chat server on this machine that says what a test has it say: real HTTP, scripted content."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], str]  # status, headers, body


def completion(text: str) -> Answer:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return 200, {}, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage})


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[tuple[str, list[tuple[str, Any, dict[str, Any]]]]]:
    """Serves; yields the address up to /v1 and the requests so far, each as path, headers and body."""
    requests: list[tuple[str, Any, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, self.headers, body))
            status, headers, text = answer(body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()

"""A forge that runs on this machine, and holds requests to the rules of GitHub's REST API.

These are the ones published for version 2022-11-28: "List issue comments", "Create an issue
comment", "Update an issue comment" and "Get the authenticated user".
"""

import json
import re
import threading
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import jsonschema

TOKEN, REPOSITORY, NUMBER = "a-token", "some-owner/some.repo", 7
MARKER = "<!-- krag-eval gate: retrieval -->"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
ANN = {"login": "ann", "type": "User"}
#: The body of a request that writes a comment.
WRITTEN = {
    "type": "object",
    "required": ["body"],
    "properties": {"body": {"type": "string", "minLength": 1, "maxLength": 65_536}},
    "additionalProperties": False,
}
#: What may be asked, with the status of success.
ROUTES = {
    ("GET", "/user"): 200,
    ("GET", rf"/repos/{REPOSITORY}/issues/{NUMBER}/comments"): 200,
    ("POST", rf"/repos/{REPOSITORY}/issues/{NUMBER}/comments"): 201,
    ("PATCH", rf"/repos/{REPOSITORY}/issues/comments/(\d+)"): 200,
}


class Forge(ThreadingHTTPServer):
    """A forge with the comments of one pull request.

    Attributes:
        comments: The comments, the oldest first.
        user: Whose token it is; ``None`` for an app's, as that of a workflow is.
        faults: What is answered instead, one for each request: ``None``, or status, headers, body.
        asked: The requests that came.
        broken: What was wrong with them.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments, self.user, self.faults = [], None, deque()
        self.asked, self.broken = [], []

    @property
    def api(self):
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, body, user):
        number = len(self.comments) + 1
        at = f"https://forge.example/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}"
        self.comments.append({"id": number, "body": body, "user": user, "html_url": at})
        return self.comments[-1]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, content, headers=()):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **dict(headers)}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        forge, method = self.server, self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        forge.asked.append(f"{method} {self.path}")
        try:
            route = next(one for one in ROUTES if method == one[0] and re.fullmatch(one[1], path))
            assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            assert self.headers["Accept"] == "application/vnd.github+json"
            assert self.headers["X-GitHub-Api-Version"] == "2022-11-28"
            assert self.headers["User-Agent"].startswith("krag_eval/")
            if method == "GET":
                assert not body
            else:
                assert self.headers["Content-Type"] == "application/json"
                jsonschema.validate(json.loads(body), WRITTEN)
        except Exception as error:
            forge.broken.append(f"{method} {self.path}: {error!r}")
            self.answer(500, {"message": "broken"})
            return
        if forge.faults and (fault := forge.faults.popleft()):
            self.answer(*fault)
        elif path == "/user" and forge.user is None:
            self.answer(403, {"message": "Resource not accessible by integration"})
        elif path == "/user":
            self.answer(200, {"id": 1, **forge.user})
        elif method == "GET":
            asked = parse_qs(query, strict_parsing=True)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            assert 1 <= size <= 100
            self.answer(200, forge.comments[(page - 1) * size : page * size])
        elif method == "POST":
            author = forge.user or BOT
            self.answer(ROUTES[route], forge.add(json.loads(body)["body"], author))
        else:
            found = forge.comments[int(path.rpartition("/")[2]) - 1]
            found["body"] = json.loads(body)["body"]
            self.answer(ROUTES[route], found)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815


@contextmanager
def serving():
    """Yield a forge that serves meanwhile; every request must have kept to its rules."""
    with Forge() as forge:
        thread = threading.Thread(target=forge.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield forge
        forge.shutdown()
        thread.join()
    assert forge.broken == []

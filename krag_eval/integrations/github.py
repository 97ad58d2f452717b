"""What the GitHub Action of this project writes: the summary of its job, and one comment.

``action.yml`` runs it as a program, ``python -m krag_eval.integrations.github``, with the variables
that GitHub sets in every job. It sends requests to ``GITHUB_API_URL`` alone, with the token in
``GITHUB_TOKEN``.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from krag_eval import __version__
from krag_eval.core import _, visible
from krag_eval.core.display.table import for_markdown

__all__ = ["Comments", "main"]

# Characters of a comment, of which the forge takes 65,536, and of a summary, of 1 MiB in UTF-8.
_COMMENT, _SUMMARY = 65_000, 250_000
_PER_PAGE, _TIMEOUT = 100, 30
# Attempts, and the most seconds to wait before another: a job that waits costs money.
_TRIES, _PATIENCE = 3, 60


class _Staying(HTTPRedirectHandler):
    """Follow no redirection: it would carry the token to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_OPENER = build_opener(_Staying)


@dataclass(frozen=True)
class Comments:
    """The comments of a pull request, as the holder of a token sees them.

    Args:
        issues: Where those of the repository are, as
            ``"https://api.github.com/repos/owner/name/issues"``.
        number: The number of the pull request.
        token: The token, which must be allowed to write pull requests.
    """

    issues: str
    number: int
    token: str

    def put(self, marker: str, body: str) -> str:
        """Write the one comment that begins with a marker: change it, or add it if there is none.

        What the server, or a limit of requests, refuses for the moment is tried again.

        Returns:
            The address of the comment.

        Raises:
            urllib.error.HTTPError: If the forge refuses, with 403 if the token may only read.
            OSError: If it cannot be reached.
        """
        for attempt in range(_TRIES - 1):
            try:
                return self._put(marker, body)
            except (OSError, HTTPException) as error:
                if (wait := _wait(error, attempt)) is None:
                    raise
                time.sleep(wait)
        return self._put(marker, body)

    def _put(self, marker: str, body: str) -> str:
        mine = next(self._own(marker), None)
        at = f"{self.number}/comments" if mine is None else f"comments/{mine}"
        content = {"body": f"{marker}\n{body}"}
        made = self._ask("POST" if mine is None else "PATCH", f"{self.issues}/{at}", content)
        return str(made["html_url"])

    def _own(self, marker: str) -> Iterator[int]:
        """Yield the comments with the marker by the holder of the token: anyone can type it."""
        login = self._login()
        for page in count(1):
            query = f"per_page={_PER_PAGE}&page={page}"
            some = self._ask("GET", f"{self.issues}/{self.number}/comments?{query}")
            for one in some:
                author = one["user"] or {}  # none of an account that was deleted
                is_own = author.get("login") == login if login else author.get("type") == "Bot"
                if is_own and (one["body"] or "").startswith(marker):
                    yield one["id"]
            if len(some) < _PER_PAGE:
                return

    def _login(self) -> str | None:
        """Return whose token it is; ``None`` for that of an app, which has no user."""
        try:
            return str(self._ask("GET", f"{self.issues.partition('/repos/')[0]}/user")["login"])
        except HTTPError as error:
            if error.code == 403:
                return None
            raise

    def _ask(self, method: str, url: str, content: object = None) -> Any:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "User-Agent": f"krag_eval/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        data = None if content is None else json.dumps(content).encode()
        request = Request(url, data, headers, method=method)
        with _OPENER.open(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)


def _wait(error: Exception, attempt: int) -> float | None:
    """Return how many seconds to wait before asking again; ``None`` if that is no use."""
    if not isinstance(error, HTTPError) or error.code >= 500:
        return 2.0**attempt
    after = error.headers.get("retry-after", "")
    return float(after) if after.isdigit() and int(after) <= _PATIENCE else None


def _cut(text: str, longest: int) -> str:
    """Return so many characters at the most, whole lines, and say so where that is not all."""
    if len(text) <= longest:
        return text
    kept = text[:longest].rpartition("\n")[0]
    return f"{kept}\n\n" + _("Cut here: it is longer than GitHub takes.") + "\n"


def _written(settings: Mapping[str, str], commit: str) -> str:
    """Return the verdict, or why there is none, and where to read on."""
    verdict = Path(settings["VERDICT"])
    if verdict.is_file():
        told = verdict.read_text("utf-8")
    else:
        errors = filter(None, settings.get("ERRORS", "").splitlines())
        said = "".join(f"- {for_markdown(one)}\n" for one in errors)
        told = "### " + _("Retrieval gate: no verdict") + f"\n\n{said}"
    run = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"
    places = {_("Report"): settings.get("REPORT"), _("Log"): run.format_map(settings)}
    links = [f"[{name}]({quote(at, ':/?=&%#')})" for name, at in places.items() if at]
    links.append(_("commit {}").format(commit))
    return f"{told}\n{' · '.join(links)}\n"


def main(settings: Mapping[str, str]) -> None:
    """Append a verdict to the summary of the job, and put it into the comment, if there may be one.

    That the comment cannot be written, as with the token of a fork, is said, and is no failure: the
    summary has it all.

    Args:
        settings: The variables of a job, and ``VERDICT``, the file that ``krag-eval gate
            --markdown`` wrote, if it did; ``ERRORS``, why it did not; ``REPORT``, the address of
            the HTML report; ``NAME``, which of several comments it is; ``PULL_REQUEST``, the number
            of one where the event has none; and ``GITHUB_TOKEN``.
    """
    event = json.loads(Path(settings["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    about = event.get("pull_request") or {}
    body = _written(settings, about.get("head", {}).get("sha") or settings["GITHUB_SHA"])
    with open(settings["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as summary:
        summary.write(_cut(body, _SUMMARY))
    number = settings.get("PULL_REQUEST") or about.get("number")
    token, name = settings.get("GITHUB_TOKEN"), re.sub(r"[^\w .]+", "-", settings.get("NAME", ""))
    if not number or not token:
        print("No comment: there is no pull request, or no token.")
        return
    at = f"{settings['GITHUB_API_URL']}/repos/{settings['GITHUB_REPOSITORY']}/issues"
    try:
        comments = Comments(at, int(number), token)
        print(comments.put(f"<!-- krag-eval gate: {name} -->", _cut(body, _COMMENT)))
    except (OSError, HTTPException, ValueError, KeyError) as error:
        told = " ".join(visible(str(error)).split()).replace("%", "%25")
        print(f"::notice title=krag-eval::No comment ({told}); the summary of the job has it all.")


if __name__ == "__main__":
    main(os.environ)

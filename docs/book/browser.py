"""A headless Chromium, spoken to over its debugging protocol: pages are opened, asked, and pictured."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fedtheory.course.handouts import NAMES

MISSING = (
    "browser: found none of {names} on the PATH, expected one. Fix: apt-get install chromium (Debian, Ubuntu), "
    "brew install --cask chromium (macOS), or name its program in BROWSER"
)
SECONDS = 60  # for one page, on a busy machine


def find() -> str:
    """The program of a browser.

    Raises SystemExit, with how to get one, where there is none.
    """
    wanted = os.environ.get("BROWSER")
    for name in (wanted,) if wanted else NAMES:
        if name and (found := shutil.which(name)):
            return found
    raise SystemExit(MISSING.format(names=wanted or ", ".join(NAMES)))


class Browser:
    """One tab. `errors` are what the console and the network said of the page that is open."""

    def __init__(self, *, width: int = 1280, height: int = 900) -> None:
        self.profile = tempfile.mkdtemp(prefix="book-")
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        words += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]  # no network at all
        words += ["--remote-debugging-port=0", f"--user-data-dir={self.profile}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([find(), *words], **quiet)
        port = Path(self.profile) / "DevToolsActivePort"
        started = time.time()
        while not (port.exists() and port.read_text().count("\n")):
            if time.time() - started > SECONDS or self.process.poll() is not None:
                raise SystemExit("browser: it did not start. Fix: try it by hand with --headless --no-sandbox")
            time.sleep(0.1)
        import websocket  # of the extra [book]; what needs no browser needs it not

        number, path = port.read_text().split("\n")[:2]
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{number}{path}", timeout=SECONDS, suppress_origin=True
        )
        self.count, self.session, self.loaded = 0, None, False
        self.errors: list[str] = []
        tab = self.say("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.say("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.say(f"{part}.enable")
        self.size(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def say(self, method: str, **words: Any) -> dict[str, Any]:
        """One command and its answer; what happens meanwhile is noted."""
        self.count += 1
        number = self.count
        message = {"id": number, "method": method, "params": words}
        self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            heard = json.loads(self.socket.recv())
            if heard.get("id") == number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']['message']}")
                return heard["result"]
            self._note(heard)

    def _note(self, heard: dict[str, Any]) -> None:
        what, said = heard.get("method"), heard.get("params", {})
        if what == "Page.loadEventFired":
            self.loaded = True
        elif what == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif what == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(part.get("value", part.get("description"))) for part in said["args"]))
        elif what == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(f"{said['entry']['text']} {said['entry'].get('url', '')}".strip())
        elif what == "Network.requestWillBeSent" and said["request"]["url"].startswith("http"):
            self.errors.append(f"asks the network for {said['request']['url']}")

    def size(self, width: int, height: int) -> None:
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url: str) -> None:
        """Open a page and wait until its mathematics is set."""
        self.errors, self.loaded = [], False
        self.say("Page.navigate", url=url)
        started = time.time()
        while not self.loaded and time.time() - started < SECONDS:
            self._note(json.loads(self.socket.recv()))
        self.ask("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")

    def ask(self, code: str) -> Any:
        """The value of an expression in the page."""
        found = self.say("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", "failed"))
        return found["result"].get("value")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.say("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

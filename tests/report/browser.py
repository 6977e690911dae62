"""A headless Chromium that does as it is told: pages are opened unchanged, and clicked, typed at, dragged and measured."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_CHROMIUM = "because there is no Chromium"
GET_CHROMIUM = "sudo apt-get install -y chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")


class Browser:
    """One window, over the DevTools protocol on a pipe: real input, real time, and a page whose policy holds."""

    def __init__(self, profile: Path, *flags: str) -> None:
        assert CHROMIUM is not None
        to_read, self.writing = os.pipe()
        self.reading, to_write = os.pipe()
        # it reads from 3 and writes to 4: moved there by a shell, whatever their numbers are here
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", *flags, "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "chromium", *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{name}.enable")
        self.requests: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.writing)
        self.process.terminate()
        self.process.wait(20)
        os.close(self.reading)

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; what the page complains about meanwhile is kept."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": given}
        if self.session is not None:
            asked["sessionId"] = self.session
        os.write(self.writing, json.dumps(asked).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self.number:
                assert "error" not in said, f"{method}: {said['error']}"
                return dict(said["result"])
            self._heard(said)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            more = os.read(self.reading, 2**16)
            assert more, "the browser has gone"
            self.buffer += more
        one, self.buffer = self.buffer.split(b"\0", 1)
        return dict(json.loads(one))

    def _heard(self, said: dict[str, Any]) -> None:
        method, given = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.complaints.append(" ".join(str(each.get("value")) for each in given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def size(self, width: int, height: int, *, phone: bool = False, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def reset(self) -> None:
        """As it was when it was started."""
        self.size(1280, 900)
        self.prefers(color_scheme="light")
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        self.complaints.clear()
        self.requests.clear()

    def print(self) -> bytes:
        """The page on paper, as a PDF."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def prefers(self, **features: str) -> None:
        """Media features, such as ``color_scheme="dark"``."""
        named = [{"name": "prefers-" + name.replace("_", "-"), "value": each} for name, each in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def open(self, address: str) -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")
        self.frames()

    def ask(self, expression: str) -> Any:
        """The value of an expression on the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def frames(self, count: int = 2) -> None:
        """Wait until so many frames have been drawn."""
        self.ask(
            f"new Promise((done) => {{ let left = {count}; const on = () => (left-- ? requestAnimationFrame(on) : done());"
            " on(); })"
        )

    def wait(self, expression: str, seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not self.ask(f"Boolean({expression})"):
            assert time.monotonic() < end, f"waited for {expression}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        x, y = self.middle(selector)
        self.drag((x, y), (x, y))

    def middle(self, selector: str) -> tuple[float, float]:
        found = self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        return float(found[0]), float(found[1])

    def drag(self, start: tuple[float, float], end: tuple[float, float], *, steps: int = 4) -> None:
        """With the mouse."""
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=start[0], y=start[1])
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **held)
        if start != end:
            for step in range(1, steps + 1):
                x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
                self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **held)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **held)

    def swipe(self, start: tuple[float, float], end: tuple[float, float], *, steps: int = 6) -> None:
        """With one finger."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": start[0], "y": start[1]}])
        for step in range(1, steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
            self.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, *, shift: bool = False) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        given: dict[str, Any] = {"key": key, "modifiers": 8 if shift else 0}
        given["windowsVirtualKeyCode"] = codes.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(made["data"]))

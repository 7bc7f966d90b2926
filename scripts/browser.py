# SPDX-License-Identifier: BSD-3-Clause
"""Opens pages in a headless Chromium over its pipe of DevTools commands; needs no driver and no network."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

# Limits for a run of 100,000 verdicts, on two AVX2 cores.
LIMITS_BYTES = {"report.html": 2_000_000, "report.json": 6_000_000, "junit.xml": 5_000_000, "run.jsonl.gz": 6_000_000}
FIRST_FRAME_S, KEYSTROKE_MS, ELEMENTS = 1.5, 100, 3000
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program():
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One tab. A context manager; send() speaks to the tab, evaluate() runs JavaScript in it."""

    def __init__(self, width=1400, height=900):
        self.size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, to_browser = os.pipe()
        from_browser, answers = os.pipe()

        def pipes():  # Chromium reads commands from 3 and answers on 4
            read, write = os.dup(commands), os.dup(answers)
            os.dup2(read, 3)
            os.dup2(write, 4)

        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen([program(), *words], preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.out, self.into = os.fdopen(to_browser, "wb", buffering=0), os.fdopen(from_browser, "rb")
        self.number, self.session, self.errors, self.requests, self.events = 0, None, [], [], set()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(**self.size)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.out.close()
        self.into.close()
        self.folder.cleanup()

    def read(self):
        message = bytearray()
        while (byte := self.into.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("the browser ended")
            message += byte
            if len(buffered := self.into.peek()) and b"\0" not in buffered:
                message += self.into.read(len(buffered))
        return json.loads(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        self.events.add(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") != self.number:
                self.note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def evaluate(self, script):
        """Returns the value of an expression; a promise is awaited."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def resize(self, width, height=900, **more):
        size = {"deviceScaleFactor": 1, "mobile": False} | more | {"width": width, "height": height}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def media(self, kind="", dark=False):
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def open(self, path, view=""):
        """Opens a page of `qcts run` and waits for its first frame; returns its time in seconds from the start of the navigation."""
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=f"file://{path}{view}")
        ready = """new Promise(done => {
          const page = document.documentElement.dataset, look = () => page.ready ? done(+page.ready) : setTimeout(look, 5);
          look();
        })"""
        while self.evaluate("location.href") == "about:blank":
            pass
        return self.evaluate(ready) / 1000

    def go(self, view):
        """Opens another view of the same page and waits for its frame."""
        frame = "new Promise(done => setTimeout(() => requestAnimationFrame(() => setTimeout(done, 30)), 150))"
        self.evaluate(f"location.hash = {json.dumps(view)}; {frame}")

    def type(self, words):
        """Types into the empty search; returns the milliseconds from each keystroke to the next frame after it."""
        script = """(async words => {
          const field = document.getElementById("query"), times = [];
          field.focus();
          for (let end = 0; end <= words.length; ++end) {
            const begin = performance.now();
            field.value = words.slice(0, end);
            field.dispatchEvent(new Event("input"));
            await new Promise(done => requestAnimationFrame(() => {
              const channel = new MessageChannel();  // a message comes after the frame is drawn
              channel.port1.onmessage = done;
              channel.port2.postMessage(0);
            }));
            times.push(performance.now() - begin);
          }
          return times;
        })"""
        return self.evaluate(f"{script}({json.dumps(words)})")

    def screenshot(self, path):
        image = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(image))

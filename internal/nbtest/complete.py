"""Asks a kernel to complete and to explain names, as JupyterLab does while a user types.

usage: complete.py --kernel NAME [--gopls DIR] CODE…

In each CODE the character | is the cursor. If a name continues after the cursor, the script requests its
documentation, otherwise its completions. A CODE without | is run as a cell. It prints a list: for each other code {"matches": [...], "text": the
text that a match replaces, "doc": the documentation}. A language server takes seconds to start, so a
request without an answer is repeated for a minute, or for --patience SECONDS. With --gopls DIR the kernel
uses the gopls in that folder. With --then COMMAND the
script first makes the first request once, which the kernel must answer by itself. Then the shell runs COMMAND, and the
script makes all requests as above.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)


def ask(request, good, patience):
    """Returns the content of a request's reply once good accepts it."""
    end = time.monotonic() + patience
    while True:
        content = request()["content"]
        if good(content) or time.monotonic() > end:
            return content
        time.sleep(0.5)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--gopls", metavar="DIR")
    p.add_argument("--then", metavar="COMMAND")
    p.add_argument("--patience", type=float, default=60, metavar="SECONDS")
    p.add_argument("codes", nargs="+")
    a = p.parse_args()
    # A short name: gopls listens on a socket below it.
    with tempfile.TemporaryDirectory(prefix="gnb-", dir="/tmp") as tmp, open(os.devnull, "w") as null:
        env = dict(os.environ, TMPDIR=tmp, JUPYTER_PREFER_ENV_PATH="1", GNB_HEADLESS="")
        if a.gopls:  # before the user's programs; a headless kernel has none of its own
            env.update(GNB_HEADLESS="1", PATH=a.gopls + os.pathsep + os.environ["PATH"])
        km, kc = start_new_kernel(kernel_name=a.kernel, startup_timeout=120, env=env, stdout=null, stderr=null)
        signal.signal(signal.SIGTERM, lambda *_: km.shutdown_kernel(now=True))
        try:
            out = []
            if a.then:
                text = a.codes[0]
                kc.execute("%%\nfmt.Println(1)", reply=True, timeout=60)  # so that it is not merely too early
                start = time.monotonic()
                c = kc.complete(text.replace("|", ""), text.index("|"), reply=True, timeout=60)["content"]
                if not c.get("matches"):
                    raise SystemExit(f"nothing completes {text!r} before {a.then}")
                print(f"answered without gopls after {time.monotonic() - start:.1f} s", file=sys.stderr)
                subprocess.run(a.then, shell=True, check=True)
            for text in a.codes:
                if "|" not in text:
                    if (c := kc.execute(text, reply=True, timeout=60)["content"])["status"] != "ok":
                        raise SystemExit(f"{text!r}: {c}")
                    continue
                at = text.index("|")
                code = text[:at] + text[at + 1:]
                if code[at:at + 1].isalnum():
                    i = ask(lambda: kc.inspect(code, at, reply=True, timeout=60), lambda i: i.get("data") and "still reading" not in str(i["data"]), a.patience)
                    out.append({"doc": "\n".join((i.get("data") or {}).values())})
                else:
                    c = ask(lambda: kc.complete(code, at, reply=True, timeout=60), lambda c: c.get("matches"), a.patience)
                    out.append({"matches": c["matches"], "text": code[c["cursor_start"]:c["cursor_end"]]})
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
    print(json.dumps(out))


main()

"""Checks that the JupyterLab of this container answers: exit status 0, or 1 with the reason.

usage: healthy.py [URL]
"""

import json
import sys
import urllib.request

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8888"
try:
    # This address needs no token.
    with urllib.request.urlopen(url + "/api", timeout=4) as answer:
        print("Jupyter Server", json.load(answer)["version"])
except (OSError, ValueError, KeyError) as err:
    sys.exit(f"{url} does not answer as a Jupyter Server: {err}")

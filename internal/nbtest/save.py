"""Puts the outputs of an executed notebook into its source, without the parts that differ between runs.

usage: save.py --source NOTEBOOK.ipynb --executed EXECUTED.ipynb [--place DIR]…

The script writes into the source the outputs and, in the notebook's metadata, the SHA-256 of its code cells, so
that a test can find out whether the outputs belong to the code ("graphnb": {"code": …}; see CODE below). It
keeps the cells, their ids and all other metadata. It leaves out execution times, the directories that --place
names (a path below one becomes relative), and escape sequences of terminals. It does not write a notebook with
an error, with a path of this machine, or of more than 400 kB; it then prints the reason and exits with 1. If a
notebook is too large with what its charts show to the pointer, it is saved without: Jupyter does not trust a
notebook of somebody else, and shows its charts as pictures anyway.
"""

import argparse
import hashlib
import json
import os
import re
import sys

LARGEST = 400 << 10
PRIVATE = re.compile(r"/(?:work|tmp|home|root|Users|var)/[\w.-]+")


def text(value):
    return "".join(value) if isinstance(value, list) else value


def lines(value):
    return value.splitlines(keepends=True)


def code(nb):
    """CODE: the SHA-256, in hex, of the sources of all code cells, each followed by a zero byte."""
    h = hashlib.sha256()
    for c in nb["cells"]:
        if c["cell_type"] == "code":
            h.update(text(c["source"]).encode() + b"\0")
    return h.hexdigest()


# What charts show to the pointer, and the script that shows it (gnb/internal/chart, pointer.go).
POINTER = re.compile(r"<script>.*?</script>|<span data-gnb='[^']*' data-gnb-key=\"[^\"]*\"></span>|data-gnb='[^']*' data-gnb-key=\"[^\"]*\" ", re.S)


def without_pointer(nb):
    for cell in nb["cells"]:
        for o in cell.get("outputs", []):
            html = text(o.get("data", {}).get("text/html", ""))
            if "data-gnb=" in html:
                o["data"]["text/html"] = POINTER.sub("", html)


def relative(value, places):
    for place in places:
        value = value.replace(place + "/", "").replace(place, ".")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", value)


def kept(o, places):
    """Returns an output in the form to save, or None if it is empty."""
    if o["output_type"] == "stream":
        t = relative(text(o["text"]), places)
        return {"name": o["name"], "output_type": "stream", "text": lines(t)} if t else None
    data = {}
    for mime, value in sorted(o["data"].items()):
        if not mime.startswith("text/"):
            data[mime] = value
        elif t := relative(text(value), places):
            data[mime] = lines(t)
    if not data:
        return None
    out = {"data": data, "metadata": {}, "output_type": o["output_type"]}
    if o["output_type"] == "execute_result":
        out["execution_count"] = None
    return out


def outputs(cell, places):
    out = []
    for o in cell.get("outputs", []):
        if o["output_type"] == "error":
            raise ValueError("%s: %s" % (o["ename"], o["evalue"]))
        o = kept(o, places)
        if o is None:
            continue
        last = out[-1] if out else None
        # Text that a cell writes in several pieces is saved as one.
        if last and o["output_type"] == "stream" == last["output_type"] and o["name"] == last["name"]:
            last["text"] = lines("".join(last["text"] + o["text"]))
        else:
            out.append(o)
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--source", required=True)
    p.add_argument("--executed", required=True)
    p.add_argument("--place", action="append", default=[])
    a = p.parse_args()
    with open(a.source, encoding="utf-8") as f:
        nb = json.load(f)
    with open(a.executed, encoding="utf-8") as f:
        executed = json.load(f)
    if code(nb) != code(executed):
        sys.exit("%s has other code than %s: it was changed meanwhile; run it again" % (a.source, a.executed))
    places = sorted({x for d in a.place for x in (os.path.abspath(d), os.path.realpath(d))}, key=len, reverse=True)
    out = saved(a.source, nb, executed, places)
    if len(out.encode()) > LARGEST:
        without_pointer(executed)
        out = saved(a.source, nb, executed, places)
    if m := PRIVATE.search(out):
        sys.exit("%s: an output names a place of this machine, %s" % (a.source, m.group()))
    if len(out.encode()) > LARGEST:
        sys.exit("%s: with its outputs it has %d kB, over the %d that a saved notebook may have" % (a.source, len(out.encode()) >> 10, LARGEST >> 10))
    aside = a.source + ".new"
    with open(aside, "w", encoding="utf-8") as f:
        f.write(out)
    os.replace(aside, a.source)


def saved(source, nb, executed, places):
    """Puts the outputs into nb and returns its text."""
    count = 0
    for i, (cell, ran) in enumerate(zip(nb["cells"], executed["cells"])):
        if cell["cell_type"] != "code":
            continue
        count += 1
        try:
            cell["outputs"] = outputs(ran, places)
        except ValueError as err:
            sys.exit("%s: cell %d ended in an error, %s" % (source, i, err))
        for o in cell["outputs"]:
            if "execution_count" in o:
                o["execution_count"] = count
        cell["execution_count"] = count
        cell.get("metadata", {}).pop("execution", None)
    nb["metadata"]["graphnb"] = {"code": code(nb)}
    return json.dumps(nb, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


main()

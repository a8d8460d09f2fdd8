#!/usr/bin/env python3
"""Counts lines and words of the tutorials' code, beside the originals'.

usage: count.py             print the table of README.md
       count.py --check     fail where README.md has another
       count.py --write     put it there
       count.py --recount FOLDER
                            count the originals anew, in clones of their repositories under
                            FOLDER/OWNER+NAME[/repo], and write originals.csv

A line counts when it holds code: not when it is blank, or nothing but comments or a docstring. Words
are what is left of those lines, split at everything that is no letter, digit or underscore: names,
keywords, numbers, and what stands in strings. Of a notebook the code cells count, of a cell's markers
the lines (%%), and of shell commands nothing.
"""

import argparse
import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
import tokenize

HERE = os.path.dirname(os.path.abspath(__file__))
TUTORIALS = os.path.join(HERE, "..", "..", "..", "tutorials")
ORIGINALS = os.path.join(HERE, "originals.csv")
README = os.path.join(TUTORIALS, "README.md")
BEGIN, END = "<!-- counts: python3 internal/nbtest/tutorials/count.py -->\n", "<!-- end of counts -->\n"


def count(code):
    """Lines and words of code that is free of comments."""
    lines = [line for line in code.splitlines() if line.strip()]
    return len(lines), sum(len(re.findall(r"\w+", line)) for line in lines)


def blank(lines, start, end):
    """Blanks the text from start to end, (line from 1, column) each."""
    for n in range(start[0], end[0] + 1):
        line = lines[n - 1]
        a = start[1] if n == start[0] else 0
        b = end[1] if n == end[0] else len(line)
        lines[n - 1] = line[:a] + " " * (b - a) + line[b:]


def python(code):
    """Python without comments and docstrings."""
    lines = code.splitlines()
    for t in tokenize.generate_tokens(io.StringIO(code).readline):
        if t.type == tokenize.COMMENT:
            blank(lines, t.start, t.end)
    for node in ast.walk(ast.parse(code)):
        # A string that stands alone does nothing: a docstring, or a comment by other means.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for n in range(node.lineno, node.end_lineno + 1):
                lines[n - 1] = ""
    return "\n".join(lines)


GO = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|`[^`]*`|\'(?:\\.|[^\'\\\n])*\')', re.S)


def go(code):
    """Go without comments."""
    return GO.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), code)


def cells(text):
    """The code cells of a notebook, one after another, without shell commands."""
    out = []
    for c in json.loads(text)["cells"]:
        if c["cell_type"] == "code":
            out += [l for l in "".join(c["source"]).splitlines() if not l.startswith("!")]
    return "\n".join(out) + "\n"


def measure(path, text):
    if path.endswith(".ipynb"):
        language = json.loads(text)["metadata"].get("kernelspec", {}).get("language", "python")
        text = cells(text)
        return count(go(text) if language == "go" else python(text))
    return count(go(text) if path.endswith(".go") else python(text))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def originals():
    with open(ORIGINALS, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def recount(folder):
    rows = originals()
    for r in rows:
        if not r["commit"]:
            continue
        repo = os.path.join(folder, r["repository"].replace("/", "+"))
        if os.path.isdir(os.path.join(repo, "repo")):
            repo = os.path.join(repo, "repo")
        text = subprocess.run(["git", "-C", repo, "show", r["commit"] + ":" + r["path"]], check=True, capture_output=True, text=True).stdout
        r["lines"], r["words"] = measure(r["path"], text)
    with open(ORIGINALS, "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        w.writeheader()
        w.writerows(rows)


def table():
    out = ["| notebook | ours: lines, words | the original's | which |\n", "|---|---|---|---|\n"]
    for r in originals():
        path = os.path.join(TUTORIALS, r["notebook"] + ".ipynb")
        ours = "%d, %d" % measure(path, read(path)) if os.path.exists(path) else "not written yet"
        theirs = "%s, %s" % (r["lines"], r["words"]) if r["lines"] else "not counted: " + r["note"]
        where = "%s `%s`" % (r["repository"], r["path"])
        if r["commit"]:
            where += " at %s" % r["commit"][:10]
        out.append("| `%s` | %s | %s | %s |\n" % (r["notebook"], ours, theirs, where))
    return "".join(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    p.add_argument("--write", action="store_true")
    p.add_argument("--recount", metavar="FOLDER")
    a = p.parse_args()
    if a.recount:
        recount(a.recount)
    if not (a.check or a.write):
        print(table(), end="")
        return
    before, found, rest = read(README).partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (found and end):
        sys.exit("count.py: %s has no lines %r and %r for the table to stand between" % (README, BEGIN, END))
    if a.write:
        with open(README, "w", encoding="utf-8") as f:
            f.write(before + BEGIN + table() + END + after)
    elif old != table():
        sys.exit("count.py: the table in %s is not what the notebooks have; python3 internal/nbtest/tutorials/count.py --write" % README)


main()

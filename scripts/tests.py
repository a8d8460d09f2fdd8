"""Sums up the events of "go test -json" that scripts/gotest.sh keeps in a folder.

usage: tests.py FOLDER SECONDS [strict]

A test that failed by nothing but waiting for too long runs once more, alone, if at most three tests failed: on a busy
machine a process may stand still for seconds. Any other failure is final, even if it shows once in a hundred runs, as a
difference of one bit would. Tests with subtests are not counted, only these.
"""

import glob
import json
import os
import re
import subprocess
import sys

folder, seconds_in_all, strict = sys.argv[1], int(sys.argv[2]), "strict" in sys.argv[3:]
# What a message says that waited for too long, what one says that compares, and what is a defect in any case.
SLOW = re.compile(r"\btim(ed|e)[ -]?out\b|\bdeadline\b|waited a minute|after a minute|within (a minute|[0-9.]+ ?m?s\b)", re.I)
COMPARED = re.compile(r"\bwant\b|\bdiffer|\bother (weights|bits|losses|digests?|rows|values)\b|not equal|\bbits?\b|\bdigests?\b", re.I)
DEFECT = re.compile(r"DATA RACE|race detected during execution|^\s*(panic:|fatal error:|SIG[A-Z]+:)", re.M)
MESSAGE = re.compile(r"^\s*\S+_test\.go:\d+: ", re.M)


def read(file):
    """Returns the results and outputs of tests, by package and test; the test "" is the package outside its tests."""
    tests = {}
    with open(file) as f:
        for line in f:
            e = json.loads(line)
            t = tests.setdefault((e.get("Package", ""), e.get("Test", "")), {"out": "", "result": "", "seconds": 0})
            if e["Action"] == "output":
                t["out"] += e["Output"]
            elif e["Action"] in ("pass", "fail", "skip"):
                t["result"], t["seconds"] = e["Action"], e.get("Elapsed", 0)
    return tests


def leaves(tests):
    """Returns the keys of the tests without subtests."""
    parents = {(p, t.rsplit("/", 1)[0]) for p, t in tests if "/" in t}
    return [k for k in sorted(tests) if k[1] and k not in parents]


def failures(tests):
    """Returns the keys of the tests that failed, subtests before their parents', or of packages that did outside tests."""
    failed = {k for k in tests if k[1] and tests[k]["result"] in ("fail", "")}
    deepest = [k for k in sorted(failed) if not any(p == k[0] and t.startswith(k[1] + "/") for p, t in failed)]
    packages = {p for p, _ in deepest}
    return deepest + [k for k in sorted(tests) if not k[1] and tests[k]["result"] == "fail" and k[0] not in packages]


def timed_out(text):
    said = MESSAGE.split(text)[1:]
    return bool(said) and not DEFECT.search(text) and all(SLOW.search(s) and not COMPARED.search(s) for s in said)


def words(name, what):
    """Returns the arguments ("args") or the environment ("env") of a run."""
    with open(f"{folder}/{name}.{what}") as f:
        return f.read().split("\0")[:-1]


def passes_alone(name, package, test):
    print(f"{name}: {package} {test} once more, alone", flush=True)
    flags = [a for a in words(name, "args") if a.startswith("-")]
    env = dict(v.split("=", 1) for v in words(name, "env"))
    return subprocess.run(["go", "test", *flags, "-count=1", f"-run=^{test}$", package], env=env).returncode == 0


def lines(name):
    """Returns the lines of a file of the folder, which need not exist."""
    if not os.path.exists(f"{folder}/{name}"):
        return []
    with open(f"{folder}/{name}") as f:
        return f.read().splitlines()


passed, failed, again, skipped, unexplained, took = 0, [], [], [], [], []
for file in sorted(glob.glob(f"{folder}/*.json")):
    name, tests = os.path.basename(file).removesuffix(".json"), read(file)
    passed += sum(tests[k]["result"] == "pass" for k in leaves(tests))
    failed += [(name, *k, tests[k]["out"]) for k in failures(tests)]
    took += [(tests[p, t]["seconds"], name, p, t) for p, t in tests if t and "/" not in t]
    if "-short" in words(name, "args"):
        continue  # such runs leave out tests on purpose
    for p, t in leaves(tests):
        if tests[p, t]["result"] == "skip":
            why = " ".join(line.strip() for line in tests[p, t]["out"].splitlines() if not re.match(r"\s*(===|---) ", line))
            skipped.append(f"{name}: {p} {t}: {why}")
            if not re.search(r"\.go:\d+: needs [a-z]+: ", why):
                unexplained.append(skipped[-1])
if len(failed) <= 3:
    again = [f for f in failed if f[2] and timed_out(f[3]) and passes_alone(f[0], f[1], f[2].split("/")[0])]
    failed = [f for f in failed if f not in again]
    passed += len(again)
skipped += lines("skipped")
unexplained += lines("skipped")
for name in lines("failed"):
    if not any(f[0] == name for f in failed + again):  # go test itself ended
        failed.append((name, "go test", "", "it failed outside a test; its output is above"))

print("\nthe slowest tests, in seconds")
for seconds, *what in sorted(took, reverse=True)[:20]:
    print(f"{seconds:7.1f}", *what)
for title, what in [
    ("skipped", skipped),
    ("left in the temporary directory", os.listdir(f"{folder}/tmp")),
    ("timed out at first and passed alone, to be mended", [" ".join(f[:3]) + "\n" + f[3] for f in again]),
    ("failed", [" ".join(f[:3]) for f in failed]),
    ("skipped for another reason than a prerequisite that the machine lacks, which is an error", unexplained if strict else []),
]:
    if what:
        print(f"\n{title} ({len(what)})", *what, sep="\n  ")
retried = f" ({len(again)} at a second attempt, after a time-out)" if again else ""
print(f"\n{seconds_in_all / 60:.1f} minutes in all")
print(f"{passed} passed{retried}, {len(failed)} failed, {len(skipped)} skipped")
sys.exit(bool(failed or strict and unexplained))

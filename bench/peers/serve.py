"""One engine in a process of its own, told what to do by JSON lines.

    python -m peers.serve ENGINE [--data DIR] [--threads N]

A request is {"do": task, …arguments}; the answer is what the task returned, or {"error": …}. What libraries
print goes to standard error.
"""

import argparse
import json
import os
import sys
import warnings


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("engine")
    p.add_argument("--data")
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    warnings.filterwarnings("ignore")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(value: dict) -> None:
        answers.write(json.dumps(value) + "\n")

    try:
        from peers import engines

        engine = engines.make(o.engine, o.data, o.threads)
        answer(engine.info())
    except (ImportError, OSError, RuntimeError) as e:
        answer({"error": f"{type(e).__name__}: {e}"[:300]})
        return
    for line in sys.stdin:
        request = json.loads(line)
        task = request.pop("do")
        try:
            answer(getattr(engine, task)(**request))
        except Exception as e:  # whatever a peer raises is that peer's result
            answer({"error": f"{type(e).__name__}: {e}"[:300]})


if __name__ == "__main__":
    main()

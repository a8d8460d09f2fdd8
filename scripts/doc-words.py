"""Reports how the documentation is written: a report, not a test.

usage: doc-words.py [--numbers] [--long] [PAGE...]      default: README.md, docs/*.md, bench/README.md, tutorials/*.md

For each page it prints the words outside code and tables, the words in tables, the mean length of a sentence in words,
and how often each tic of scripts/doc-words.py occurs. Generated blocks count as tables. With --numbers it also prints
the numbers that are neither in code, in a generated block, nor in a paragraph or table with a date, a command or a link
to bench/results, with their lines: each needs a machine, a date and a command, or goes. Small whole numbers up to 16,
powers of two and years are not listed. With --long it prints the sentences of more than 25 words.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What a reader stumbles over: the name in the report, and what is looked for in a page's sentences and tables.
TICS = {
    "So is it": r"\bSo (is|are|do|does|has|have) (it|they|the|a|each|this)\b",
    "those of": r"\bthose (of|that|which|in|by|with)\b",
    "that of": r"\bthat of\b",
    "what": r"(?<![Ss]ays )\b[Ww]hat (?!is new)[a-z]+ (?![^.?]*\?)",
    "of your own": r"\bof (your|its|their|one's|our) own\b",
    "beside": r"\bbesides?\b",
    "to the bit": r"\bto the (same )?bits?\b",
    "is refused": r"\b(is|are|was|were) refused\b|\brefuses?\b",
    "who": r"(?<!readers )(?<!people )(?<!someone )(?<!users )\b[Ww]ho\b",
    "history": r"\b(since then|until now|no longer|any more|used to|formerly|previously|was mended|were mended)\b|\bnow\b",
    "so that": r"\bso that\b",
    "also where": r"\balso (where|if|when|in|on|after)\b",
}

GENERATED = re.compile(r"<!-- ([^:>]+): written by .*?<!-- end of \1 -->", re.S)
FENCE = re.compile(r"^ {0,3}```.*?^ {0,3}```[^\n]*$", re.S | re.M)
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SPAN = re.compile(r"`[^`\n]*`")
WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
SENTENCE = re.compile(r"(?<=[.?!:])\s+(?=[\"“(*]*[A-Z0-9])")
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATED = re.compile(rf"\b\d{{1,2}} {MONTH}\b|\b{MONTH} (?:20)?\d\d|\b20\d\d-\d\d-\d\d\b")
COMMAND = re.compile(r"`[^`\n]*\b(?:gnb|make|go|python3?|GNB_[A-Z]+=\S*|bench/)\s?[^`\n]*`|bench/results")
NUMBER = re.compile(r"(?<![\w.,^])[-+×]? ?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)(?:\s?%)?")


def blank(pattern, text):
    """Returns the text without what matches, on as many lines as before."""
    return pattern.sub(lambda m: "\n" * m.group(0).count("\n"), text)


def blocks(text):
    """Returns the paragraphs, list items and tables of a page as (line, text, whether it is a table)."""
    found, start, lines = [], 0, []

    def end():
        if lines:
            found.append((start, "\n".join(lines), lines[0].lstrip().startswith("|")))
            lines.clear()

    for number, line in enumerate(text.split("\n"), 1):
        table = line.lstrip().startswith("|")
        indented = line.startswith(("    ", "\t")) and not lines
        item = re.match(r"\s*(?:[-*]|\d+\.) ", line) is not None
        if not line.strip() or line.startswith("#") or indented or item or (lines and table != lines[0].lstrip().startswith("|")):
            end()
        if not line.strip() or line.startswith("#") or indented:
            continue
        if not lines:
            start = number
        lines.append(line)
    end()
    return found


def prose(text):
    """Returns what a reader reads of a paragraph: its words without markup."""
    return re.sub(r"[*_>]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", LINK.sub(r"\1", SPAN.sub("Code", text)))


def kept(number):
    """Reports whether a number may stand alone: a small one, a year, or the interface's size such as 1024."""
    digits = number.strip(" -+×%").replace(",", "")
    if "%" in number or "." in digits or "e" in digits:
        return False
    value = int(digits)
    return value <= 16 or 1900 <= value <= 2100 or (value & (value - 1)) == 0


def numbers(text):
    """Yields the line and the number of each number without evidence."""
    parts = blocks(text)
    for i, (line, part, table) in enumerate(parts):
        near = part
        if table and i:  # what introduces a table is its evidence
            near += parts[i - 1][1]
        elif not table:  # commands in the paragraph count, and so do those of the same list
            near = part
        if DATED.search(near) or COMMAND.search(near):
            continue
        for offset, row in enumerate(prose(part).split("\n")):
            if not re.match(r"\s*\|[-:| ]+\|$", row):
                for m in NUMBER.finditer(row):
                    if not kept(m.group(0)):
                        yield line + offset, m.group(0).strip()


def report(path, with_numbers, with_long):
    """Prints one page's line; returns its words."""
    text = path.read_text(encoding="utf-8")
    text = blank(COMMENT, blank(FENCE, blank(GENERATED, text)))
    words, in_tables, sentences, tics, long = 0, 0, 0, dict.fromkeys(TICS, 0), []
    for line, part, table in blocks(text):
        read = prose(part)
        count = len(WORD.findall(read))
        if table:
            in_tables += count
        else:
            words += count
            for sentence in SENTENCE.split(" ".join(read.split())):
                length = len(WORD.findall(sentence))
                sentences += length > 2
                if length > 25:
                    long.append((line, length, sentence))
        for name, pattern in TICS.items():
            tics[name] += len(re.findall(pattern, read))
    found = ", ".join(f"{name} {n}" for name, n in tics.items() if n)
    print(f"{path.relative_to(ROOT)!s:34} {words:6} {in_tables:7} {words / max(1, sentences):9.1f}  {found}")
    if with_numbers:
        for line, number in numbers(text):
            print(f"    {line}: {number}")
    if with_long:
        for line, length, sentence in long:
            print(f"    {line}: {length} words: {sentence}")
    return words


def main():
    args = sys.argv[1:]
    if "-h" in args or "--help" in args:
        sys.exit(__doc__)
    pages = [pathlib.Path(a).resolve() for a in args if not a.startswith("-")]
    if not pages:
        pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "bench/README.md", *sorted((ROOT / "tutorials").glob("*.md"))]
    print(f"{'page':34} {'words':>6} {'tables':>7} {'sentence':>9}  tics")
    total = sum(report(p, "--numbers" in args, "--long" in args) for p in pages)
    print(f"{'in all':34} {total:6}")


if __name__ == "__main__":
    main()

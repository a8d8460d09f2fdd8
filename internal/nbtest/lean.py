"""Leaves out packages that Jupyter's packages import but do not need here.

jsonschema, with which they validate notebooks and events, imports two packages if they are installed:
rfc3987_syntax, to check texts that a schema declares to be IRIs, and isoduration, for durations. The first builds
a parser when it is imported, which takes more than a second of processor time in each process; the second imports
arrow. No schema of notebooks has such texts. After "import lean", both count as not installed.
"""

import sys

for name in ("rfc3987_syntax", "isoduration"):
    sys.modules[name] = None

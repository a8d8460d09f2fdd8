"""Leaves out a package that Jupyter's packages import but do not need here.

jsonschema, with which they validate notebooks and events, imports rfc3987_syntax if it is installed, to check
texts that a schema declares to be IRIs. That package builds a parser when it is imported, which takes more than
a second of processor time in each process. No schema of notebooks has such texts. After "import lean", it counts
as not installed.
"""

import sys

sys.modules["rfc3987_syntax"] = None

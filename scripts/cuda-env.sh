# To be sourced: sets the environment for "go build -tags cuda", so that gorgonia.org/cu finds
# GraphNB's own cuda.h. CUDA need not be installed. The C compiler reads CPATH itself; in CGO_CFLAGS, the
# folder would make the go command compile the standard library's packages with cgo, and all that import them, again.
CPATH="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cuda/internal/shim/include${CPATH:+:$CPATH}"
export CPATH CGO_ENABLED=1

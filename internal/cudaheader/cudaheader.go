// Package cudaheader sets the environment in which the C compiler finds GraphNB's own cuda.h, whether
// CUDA is installed or not.
package cudaheader

import (
	"os"
	"strings"
)

// Dir is the directory of cuda.h in the module.
const Dir = "internal/cuda/internal/shim/include"

// installed are the directories in which gorgonia.org/cu looks for the header of an installed CUDA, before all that the
// environment names. CUDA 13's does not fit gorgonia.org/cu. If C_INCLUDE_PATH names a directory too, the compiler
// leaves it out of the directories of -I, and searches it after those of CPATH.
var installed = []string{
	"/usr/local/cuda/include", "/opt/cuda/include", "/usr/local/cuda-11.0/targets/x86_64-linux/include", "/usr/local/cuda-10.2/include",
}

// Env returns the variables of the environment for compiling with -tags cuda, with which the compiler finds the
// header in dir first; get returns the user's own values of them. In CGO_CFLAGS, the directory would make the go
// command compile package net, and all that import it, again; the compiler reads these variables itself.
func Env(dir string, get func(name string) string) map[string]string {
	return map[string]string{
		"CGO_ENABLED":    "1",
		"CPATH":          list(dir, get("CPATH")),
		"C_INCLUDE_PATH": list(get("C_INCLUDE_PATH"), strings.Join(installed, string(os.PathListSeparator))),
	}
}

// list joins two lists of directories. An empty entry would mean the current directory.
func list(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + string(os.PathListSeparator) + b
}

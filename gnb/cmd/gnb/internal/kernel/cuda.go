package kernel

import (
	"os"
	"slices"
	"strings"
)

// cudaSettings returns the environment for compiling with -tags cuda. dir is the directory of
// cuda.h, which gorgonia.org/cu finds only through the environment; path is the user's own CPATH.
// The C compiler reads CPATH itself. In CGO_CFLAGS, the directory would make the go command compile
// package net, and all that import it, again.
func cudaSettings(dir, path string) map[string]string {
	if path != "" {
		dir += string(os.PathListSeparator) + path
	}
	return map[string]string{"CGO_ENABLED": "1", "CPATH": dir}
}

// withTag adds a tag to the tags in flags of the go command, which takes the last -tags.
func withTag(flags, tag string) string {
	words := strings.Fields(flags)
	for i, w := range slices.Backward(words) {
		name, tags, ok := strings.Cut(strings.TrimLeft(strings.Trim(w, `'"`), "-"), "=")
		if !ok || name != "tags" {
			continue
		}
		if !slices.Contains(strings.Split(tags, ","), tag) {
			words[i] = "-tags=" + tags + "," + tag
		}
		return strings.Join(words, " ")
	}
	return strings.Join(append(words, "-tags="+tag), " ")
}

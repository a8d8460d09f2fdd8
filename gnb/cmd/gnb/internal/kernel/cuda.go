package kernel

import "strings"

// cudaSettings returns the environment for compiling with -tags cuda. dir is the directory of
// cuda.h, which gorgonia.org/cu finds only through CGO_CFLAGS; flags is the user's own CGO_CFLAGS.
func cudaSettings(dir, flags string) map[string]string {
	if flags == "" {
		flags = "-O2 -g" // the go command's default
	}
	return map[string]string{"CGO_ENABLED": "1", "CGO_CFLAGS": flags + " -I" + dir}
}

// withTag adds the tag cuda to the tags in flags of the go command.
func withTag(flags string) string {
	words := strings.Fields(flags)
	for i, w := range words {
		if name, tags, ok := strings.Cut(strings.TrimLeft(w, "-"), "="); ok && name == "tags" {
			words[i] = "-tags=" + tags + ",cuda"
			return strings.Join(words, " ")
		}
	}
	return strings.Join(append(words, "-tags=cuda"), " ")
}

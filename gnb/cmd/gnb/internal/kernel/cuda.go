package kernel

import "strings"

// cudaSettings are what compiling with -tags cuda wants in the environment; dir is the header's, and
// flags the user's own CGO_CFLAGS. gorgonia.org/cu finds the header by it, and by nothing else.
func cudaSettings(dir, flags string) map[string]string {
	if flags == "" {
		flags = "-O2 -g" // the go command's default
	}
	return map[string]string{"CGO_ENABLED": "1", "CGO_CFLAGS": flags + " -I" + dir}
}

// withTag is flags for the go command with the tag cuda among its tags.
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

package kernel

import (
	"slices"
	"strings"
)

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

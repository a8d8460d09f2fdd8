package clustertest

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// withPath puts a folder first on PATH.
func withPath(env []string, dir string) []string {
	out := make([]string, 0, len(env)+1)
	path := ""
	for _, kv := range env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = p
			continue
		}
		out = append(out, kv)
	}
	return append(out, "PATH="+dir+":"+path)
}

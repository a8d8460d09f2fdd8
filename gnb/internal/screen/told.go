package screen

import (
	"strings"
	"sync"
)

var (
	toldMu sync.Mutex
	told   = map[string]bool{}
)

// Told notes that the cell shows text, the reason why a run ended.
func Told(text string) {
	toldMu.Lock()
	defer toldMu.Unlock()
	told[words(text)] = true
}

// WasTold reports whether the cell shows text, with other line breaks perhaps.
func WasTold(text string) bool {
	toldMu.Lock()
	defer toldMu.Unlock()
	return told[words(text)]
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

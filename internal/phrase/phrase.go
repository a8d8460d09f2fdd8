// Package phrase makes the parts of messages: counted nouns, lists, numbers of bytes, and the name
// that was likely meant.
package phrase

import (
	"fmt"
	"strings"
)

// Count returns a number with its noun: "1 worker", "2 workers".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// List joins parts: "a", "a and b", "a, b and c".
func List(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// Clauses joins clauses by semicolons. If there are more than five, it shows four and the number of
// the others.
func Clauses(parts []string) string {
	const most = 4
	if more := len(parts) - most; more > 1 {
		return strings.Join(parts[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(parts, "; ")
}

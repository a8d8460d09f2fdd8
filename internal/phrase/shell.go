package phrase

import "strings"

// ShellQuoted returns a word in quotes that every shell reads as that word.
func ShellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

package phrase

import (
	"strings"
	"unicode"
)

// Clean makes untrusted text harmless for a terminal, line by line: it removes escape sequences,
// control characters and overrides of the text direction. Line breaks stay.
func Clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r != '\n' && !harmless(r) }) < 0 {
		return s
	}
	out := strings.Split(s, "\n")
	for i := range out {
		out[i] = CleanLine(out[i])
	}
	return strings.Join(out, "\n")
}

// harmless reports whether a character has no effect besides being printed.
func harmless(r rune) bool { return !unicode.IsControl(r) && r != unicode.ReplacementChar && !bidi(r) }

// CleanLine makes one line of untrusted text harmless for a terminal and readable in a table: it
// drops text that a carriage return would have overwritten, turns tabs into spaces, and removes
// escape sequences and other control characters.
func CleanLine(s string) string {
	s = strings.TrimRight(s, "\r")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	if strings.IndexFunc(s, func(r rune) bool { return !harmless(r) }) < 0 {
		return s
	}
	var b strings.Builder
	r := []rune(s)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\t':
			b.WriteString("    ")
		case c == 0x1b:
			i = EscapeEnd(r, i)
		case unicode.IsControl(c) || bidi(c):
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// bidi reports whether r overrides the text direction, which could reverse a line's meaning.
func bidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// EscapeEnd returns the index of the last rune of the escape sequence that
// starts at r[i].
func EscapeEnd(r []rune, i int) int {
	if i+1 >= len(r) {
		return i
	}
	switch r[i+1] {
	case '[': // CSI: parameters, then one final byte
		for j := i + 2; j < len(r); j++ {
			if r[j] >= 0x40 && r[j] <= 0x7e {
				return j
			}
		}
		return len(r) - 1
	case ']': // OSC: up to BEL or ST
		for j := i + 2; j < len(r); j++ {
			if r[j] == 7 {
				return j
			}
			if r[j] == 0x1b && j+1 < len(r) && r[j+1] == '\\' {
				return j + 1
			}
		}
		return len(r) - 1
	}
	return i + 1
}

package phrase

import (
	"strings"
	"unicode"
)

// Clean makes text of any source harmless for a terminal, line by line: escape sequences and
// control characters go, and overrides of the direction of text. Line breaks stay.
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

// harmless says that a character does nothing but take room.
func harmless(r rune) bool { return !unicode.IsControl(r) && r != unicode.ReplacementChar && !bidi(r) }

// CleanLine makes one line of user text harmless for a terminal and readable in a
// table: what a carriage return would have overwritten is dropped, tabs become
// spaces, escape sequences and other control characters go.
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

// bidi returns the overrides that could turn a line's meaning around.
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

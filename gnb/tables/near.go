package tables

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// near returns the id of a node that looks like the text, and how they differ; "" if there is none. It reads all ids.
func (x *index) near(k key) string {
	if !k.text {
		return ""
	}
	want := looks(k.word)
	if want == "" {
		return ""
	}
	for v := range int32(x.n) {
		if id := x.key(v); looks(id.String()) == want {
			return id.String()
		}
	}
	return ""
}

// looks returns what is seen of a text: in composed characters, without invisible ones, in lower case, and with one kind
// of space.
func looks(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r) || r == '\u034f':
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(s))
	return strings.TrimSpace(s)
}

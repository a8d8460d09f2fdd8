package ptx

import (
	"fmt"
	"strings"
)

// token is a word (directives, opcodes with their suffixes, names), a number or
// one character of punctuation.
type token struct {
	text string
	line int
}

func (t token) number() bool { return t.text != "" && t.text[0] >= '0' && t.text[0] <= '9' }

func wordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%' || c == '.'
}

func wordByte(c byte) bool { return wordStart(c) || c >= '0' && c <= '9' }

// lex splits a source into tokens. It drops comments; a string is one token with its quotes.
func lex(src string) ([]token, error) {
	var out []token
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(src[i:], "//"):
			if end := strings.IndexByte(src[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(src)
			}
		case strings.HasPrefix(src[i:], "/*"):
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				return nil, fmt.Errorf("line %d: a comment has no end", line)
			}
			line += strings.Count(src[i:i+2+end], "\n")
			i += end + 4
		case c == '"':
			end := strings.IndexAny(src[i+1:], "\"\n")
			if end < 0 || src[i+1+end] == '\n' {
				return nil, fmt.Errorf("line %d: a string has no end", line)
			}
			out = append(out, token{src[i : i+end+2], line})
			i += end + 2
		case wordByte(c):
			j := i + 1
			// A colon pair belongs to a suffix (.L2::128B), a single one ends a label.
			for j < len(src) && (wordByte(src[j]) || strings.HasPrefix(src[j:], "::")) {
				if src[j] == ':' {
					j++
				}
				j++
			}
			out = append(out, token{src[i:j], line})
			i = j
		case strings.IndexByte("{}()[]<>,;:=+-|!@?*&", c) >= 0:
			out = append(out, token{src[i : i+1], line})
			i++
		default:
			return nil, fmt.Errorf("line %d: character %q has no place in PTX", line, c)
		}
	}
	return out, nil
}

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

// lex splits a text into tokens. It drops comments; a string is one token with its quotes, and so is a kernel after its name.
func lex(text token) ([]token, error) {
	src, line := text.text, text.line
	out := make([]token, 0, len(src)/5) // a few more than most kernels have
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
			if len(out) > 1 && out[len(out)-2].text == ".entry" {
				kernel := src[i : i+kernelEnd(src[i:])]
				out = append(out, token{kernel, line})
				line += strings.Count(kernel, "\n")
				i += len(kernel)
			}
		case strings.IndexByte("{}()[]<>,;:=+-|!@?*&", c) >= 0:
			out = append(out, token{src[i : i+1], line})
			i++
		default:
			return nil, fmt.Errorf("line %d: character %q has no place in PTX", line, c)
		}
	}
	return out, nil
}

// kernelEnd returns where a kernel ends: after the brace that closes its first one.
func kernelEnd(src string) int {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth <= 0 {
				return i + 1
			}
		case '/', '"':
			end := -1
			switch {
			case src[i] == '"':
				end = strings.IndexByte(src[i+1:], '"')
			case strings.HasPrefix(src[i:], "//"):
				end = strings.IndexByte(src[i:], '\n') - 1
			case strings.HasPrefix(src[i:], "/*"):
				end = strings.Index(src[i+2:], "*/") + 2
			}
			i += max(end+1, 0)
		}
	}
	return len(src)
}

package pickle

import (
	"strconv"
	"unicode/utf8"
)

// quoted reads protocol 0's bytes: a Python literal with escapes.
func (d *decoder) quoted() (word, error) {
	s, err := d.line()
	if err != nil {
		return 0, err
	}
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' || s[len(s)-1] != s[0] {
		return 0, d.errorf("a string is not in quotes")
	}
	s = s[1 : len(s)-1]
	if err := d.charge(len(s)); err != nil {
		return 0, err
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; i == len(s) {
			return 0, d.errorf("a string ends within an escape")
		}
		switch c := s[i]; c {
		case '\\', '\'', '"':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'a', 'b', 'f', 'v':
			out = append(out, map[byte]byte{'a': 7, 'b': 8, 'f': 12, 'v': 11}[c])
		case 'x':
			if i+2 >= len(s) {
				return 0, d.errorf("a string ends within an escape")
			}
			x, err := strconv.ParseUint(string(s[i+1:i+3]), 16, 8)
			if err != nil {
				return 0, d.errorf("a string has the escape %q", s[i-1:i+3])
			}
			out = append(out, byte(x))
			i += 2
		default:
			end := i
			for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
				end++
			}
			x, err := strconv.ParseUint(string(s[i:end]), 8, 8)
			if err != nil {
				return 0, d.errorf("a string has the escape %q", s[i-1:i+1])
			}
			out = append(out, byte(x))
			i = end - 1
		}
	}
	return d.textWord(tagBytes, out)
}

// escaped reads protocol 0's text: Latin-1 with \u and \U escapes.
func (d *decoder) escaped() (word, error) {
	s, err := d.line()
	if err != nil {
		return 0, err
	}
	if err := d.charge(2 * len(s)); err != nil {
		return 0, err
	}
	out := make([]byte, 0, 2*len(s))
	for i := 0; i < len(s); i++ {
		digits := 0
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits == 0 {
			out = utf8.AppendRune(out, rune(s[i]))
			continue
		}
		if i+2+digits > len(s) {
			return 0, d.errorf("a string ends within an escape")
		}
		x, err := strconv.ParseUint(string(s[i+2:i+2+digits]), 16, 32)
		if err != nil || x > utf8.MaxRune || !utf8.ValidRune(rune(x)) {
			return 0, d.errorf("a string has the escape %q", s[i:i+2+digits])
		}
		out = utf8.AppendRune(out, rune(x))
		i += 1 + digits
	}
	return d.textWord(tagText, out)
}

// latin1 is _codecs.encode(text, "latin1"), which is how Python 3 writes bytes by
// the protocols that have none.
func (d *decoder) latin1(text, codec word) (word, error) {
	name, _ := d.text(codec)
	if text.kind() != Text || string(name) != "latin1" && string(name) != "latin-1" {
		return 0, d.errorf("_codecs.encode is read with a string and \"latin1\" only")
	}
	s, _ := d.text(text)
	n := utf8.RuneCount(s)
	if err := d.charge(n); err != nil {
		return 0, err
	}
	out := make([]byte, 0, n)
	for _, r := range string(s) {
		if r > 255 {
			return 0, d.errorf("a string that should be Latin-1 has the character %q", r)
		}
		out = append(out, byte(r))
	}
	return d.textWord(tagBytes, out)
}

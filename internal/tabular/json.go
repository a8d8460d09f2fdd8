package tabular

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON reads values from a JSON text of any size without keeping the text: the role.json of a
// large graph is one list of hundreds of megabytes. It accepts RFC 8259 and also NaN, which Python
// writes.
type JSON struct {
	refuse func(format string, args ...any) error
	r      *bufio.Reader
	n      int64 // bytes read
}

const (
	maxJSONText   = 1 << 20 // bytes of a string
	maxJSONNumber = 64
	maxJSONDepth  = 1000
)

// NewJSON returns a reader of the text r. Its errors are those that wrong makes of a message.
func NewJSON(r io.Reader, wrong func(format string, args ...any) error) *JSON {
	return &JSON{refuse: wrong, r: bufio.NewReaderSize(r, 1<<18)}
}

// Wrong returns an error at the reader's position.
func (j *JSON) Wrong(format string, args ...any) error {
	return j.refuse("byte %d: "+format, append([]any{j.n}, args...)...)
}

func (j *JSON) byte() (byte, error) {
	c, err := j.r.ReadByte()
	if err != nil {
		return 0, j.ended(err)
	}
	j.n++
	return c, nil
}

func (j *JSON) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return j.Wrong("it ends in the middle of a value: it was cut off; fetch it again")
	}
	return err
}

// Peek returns the first byte of the next token.
func (j *JSON) Peek() (byte, error) {
	for {
		c, err := j.byte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			j.back()
			return c, nil
		}
	}
}

func (j *JSON) back() {
	j.n--
	_ = j.r.UnreadByte() // cannot fail after ReadByte
}

// take reads the next token's first byte, which must be c.
func (j *JSON) take(c byte) error {
	got, err := j.Peek()
	if err != nil {
		return err
	}
	if got != c {
		return j.Wrong("%q was expected, not %q", c, got)
	}
	_, err = j.byte()
	return err
}

// list calls visit for every element between open and closing; visit reads the element.
func (j *JSON) list(open, closing byte, visit func() error) error {
	if err := j.take(open); err != nil {
		return err
	}
	c, err := j.Peek()
	if err != nil {
		return err
	}
	if c == closing {
		return j.take(closing)
	}
	for {
		if err := visit(); err != nil {
			return err
		}
		c, err := j.Peek()
		if err != nil {
			return err
		}
		switch c {
		case ',':
			_, _ = j.byte()
		case closing:
			return j.take(closing)
		default:
			return j.Wrong("%q or %q was expected, not %q", ",", closing, c)
		}
	}
}

// Array calls visit for every element; visit reads the element.
func (j *JSON) Array(visit func() error) error { return j.list('[', ']', visit) }

// Object calls visit for every key; visit reads the value.
func (j *JSON) Object(visit func(key string) error) error {
	return j.list('{', '}', func() error {
		key, err := j.Text()
		if err != nil {
			return err
		}
		if err := j.take(':'); err != nil {
			return err
		}
		return visit(key)
	})
}

// Text reads a string.
func (j *JSON) Text() (string, error) {
	if err := j.take('"'); err != nil {
		return "", err
	}
	var b []byte
	for {
		c, err := j.byte()
		if err != nil {
			return "", err
		}
		switch {
		case c == '"':
			if !utf8.Valid(b) {
				b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
			}
			return string(b), nil
		case c < 0x20:
			return "", j.Wrong("a string has the control character %q", c)
		case c == '\\':
			if b, err = j.escape(b); err != nil {
				return "", err
			}
		default:
			b = append(b, c)
		}
		if len(b) > maxJSONText {
			return "", j.Wrong("a string is longer than %d bytes", maxJSONText)
		}
	}
}

func (j *JSON) escape(b []byte) ([]byte, error) {
	c, err := j.byte()
	if err != nil {
		return b, err
	}
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), c); i >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return b, j.Wrong("a string has the unknown escape \\%c", c)
	}
	r, err := j.hex()
	if err != nil {
		return b, err
	}
	if utf16.IsSurrogate(r) {
		if next, err := j.r.Peek(2); err != nil || string(next) != `\u` {
			return utf8.AppendRune(b, utf8.RuneError), nil
		}
		_, _ = j.byte()
		_, _ = j.byte()
		low, err := j.hex()
		if err != nil {
			return b, err
		}
		r = utf16.DecodeRune(r, low)
	}
	return utf8.AppendRune(b, r), nil
}

func (j *JSON) hex() (rune, error) {
	var digits [4]byte
	for i := range digits {
		c, err := j.byte()
		if err != nil {
			return 0, err
		}
		digits[i] = c
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 32)
	if err != nil {
		return 0, j.Wrong("a string has the escape \\u%s, which is not a character", digits[:])
	}
	return rune(n), nil
}

// word reads a number, true, false, null or NaN and returns its text.
func (j *JSON) word() ([]byte, error) {
	c, err := j.Peek()
	if err != nil {
		return nil, err
	}
	var b []byte
	for {
		ok := c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !ok {
			break
		}
		if _, err = j.byte(); err != nil {
			return nil, err
		}
		if b = append(b, c); len(b) > maxJSONNumber {
			return nil, j.Wrong("a number of more than %d characters", maxJSONNumber)
		}
		next, err := j.r.Peek(1)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, j.ended(err)
		}
		c = next[0]
	}
	if len(b) == 0 {
		return nil, j.Wrong("a value was expected, not %q", c)
	}
	return b, nil
}

// Number reads a number; NaN, null and Infinity are NaN.
func (j *JSON) Number() (float64, error) {
	b, err := j.word()
	if err != nil {
		return 0, err
	}
	switch string(b) {
	case "NaN", "null", "Infinity", "-Infinity":
		return math.NaN(), nil
	}
	if x, ok := Whole(b); ok {
		return float64(x), nil
	}
	x, ok := Decimal(b)
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, j.Wrong("%s is not a number", Shown(b))
	}
	return x, nil
}

// Whole reads a whole number; 3.0 is accepted.
func (j *JSON) Whole() (int64, error) {
	b, err := j.word()
	if err != nil {
		return 0, err
	}
	if n, ok := Whole(b); ok {
		return n, nil
	}
	if x, ok := Decimal(b); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return int64(x), nil
	}
	return 0, j.Wrong("%s is not a whole number", Shown(b))
}

// Boolean reads true or false.
func (j *JSON) Boolean() (bool, error) {
	b, err := j.word()
	if err != nil {
		return false, err
	}
	switch string(b) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, j.Wrong("%s is neither true nor false", Shown(b))
}

// Skip skips a value.
func (j *JSON) Skip() error { return j.skipTo(0) }

func (j *JSON) skipTo(depth int) error {
	c, err := j.Peek()
	switch {
	case err != nil:
		return err
	case depth > maxJSONDepth:
		return j.Wrong("values are nested more than %d deep", maxJSONDepth)
	case c == '{':
		return j.Object(func(string) error { return j.skipTo(depth + 1) })
	case c == '[':
		return j.Array(func() error { return j.skipTo(depth + 1) })
	case c == '"':
		_, err = j.Text()
		return err
	}
	b, err := j.word()
	if err != nil {
		return err
	}
	switch string(b) {
	case "true", "false", "null", "NaN", "Infinity", "-Infinity":
		return nil
	}
	if _, ok := Decimal(b); !ok {
		return j.Wrong("%s is not a value", Shown(b))
	}
	return nil
}

// End returns an error if more text follows.
func (j *JSON) End() error {
	for {
		c, err := j.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w", err)
		}
		j.n++
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return j.Wrong("%q follows the end of the value", c)
		}
	}
}

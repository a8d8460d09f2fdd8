package phrase

import "strings"

// Sentence makes one line of a text of several, as the errors of several causes have them: the lines are clauses, with a
// semicolon between them unless the earlier one ends with a mark of its own. Empty lines, and lines that an earlier one
// contains, are left out.
func Sentence(text string) string {
	if !strings.ContainsAny(text, "\n\r") {
		return text
	}
	var b strings.Builder
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line == "" || strings.Contains(b.String(), line) {
			continue
		}
		if s := b.String(); s != "" {
			if !strings.ContainsAny(s[len(s)-1:], ":;,.") {
				b.WriteByte(';')
			}
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// OneLine returns an error whose text is one line, and which errors.Is and errors.As treat as err; nil for nil.
func OneLine(err error) error {
	if err == nil || !strings.ContainsAny(err.Error(), "\n\r") {
		return err
	}
	return oneLine{err}
}

type oneLine struct{ error }

func (e oneLine) Error() string { return Sentence(e.error.Error()) }
func (e oneLine) Unwrap() error { return e.error }

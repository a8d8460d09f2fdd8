package typed

import (
	"fmt"
	"strings"
)

// maxYAMLDepth bounds how deep lists and mappings of a YAML file are inside each other.
const maxYAMLDepth = 10

// yamlLine is a line of a YAML file that is not blank.
type yamlLine struct {
	number, indent int
	text           string // without indent and comment
}

// yamlReader reads the part of YAML that meta.yaml of a DGL dataset uses: mappings and lists by indentation, lists in
// brackets, and plain or quoted scalars, which stay text. Anchors, tags, mappings in braces, text of several lines and
// further documents are errors.
type yamlReader struct {
	lines []yamlLine
}

// parseYAML returns a string, a []any or a map[string]any.
func parseYAML(text string) (any, error) {
	r := &yamlReader{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r \t")
		plain := strings.TrimLeft(line, " ")
		indent := len(line) - len(plain)
		plain = uncommented(plain)
		switch {
		case plain == "" || plain == "---" && len(r.lines) == 0:
			continue
		case strings.HasPrefix(plain, "\t"):
			return nil, fmt.Errorf("line %d begins with a tab; YAML is indented with blanks", i+1)
		}
		r.lines = append(r.lines, yamlLine{i + 1, indent, plain})
	}
	if len(r.lines) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	v, err := r.block(r.lines[0].indent, 0)
	if err == nil && len(r.lines) > 0 {
		err = r.lines[0].wrong("it is indented otherwise than the lines before it")
	}
	return v, err
}

func (l yamlLine) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{l.number}, args...)...)
}

// uncommented returns a line without its comment.
func uncommented(text string) string {
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t'):
			return strings.TrimRight(text[:i], " \t")
		}
	}
	return text
}

// block reads the list or mapping whose lines have an indent.
func (r *yamlReader) block(indent, depth int) (any, error) {
	line := r.lines[0]
	if depth > maxYAMLDepth {
		return nil, line.wrong("lists and mappings are more than %d deep", maxYAMLDepth)
	}
	if line.text == "-" || strings.HasPrefix(line.text, "- ") {
		return r.list(indent, depth)
	}
	m := map[string]any{}
	for len(r.lines) > 0 && r.lines[0].indent == indent {
		line := r.lines[0]
		key, value, ok := yamlKey(line.text)
		if !ok {
			return nil, line.wrong("%.80q is no key with a value, such as file_name: nodes.csv", line.text)
		}
		if _, twice := m[key]; twice {
			return nil, line.wrong("the key %q is there twice", key)
		}
		r.lines = r.lines[1:]
		var err error
		switch {
		case value != "":
			m[key], err = scalar(line, value)
		case len(r.lines) > 0 && (r.lines[0].indent > indent || r.lines[0].indent == indent && strings.HasPrefix(r.lines[0].text, "-")):
			m[key], err = r.block(r.lines[0].indent, depth+1)
		default:
			m[key] = ""
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *yamlReader) list(indent, depth int) (any, error) {
	var all []any
	for len(r.lines) > 0 && r.lines[0].indent == indent && (r.lines[0].text == "-" || strings.HasPrefix(r.lines[0].text, "- ")) {
		line := r.lines[0]
		rest := strings.TrimLeft(line.text[1:], " ")
		var v any
		var err error
		switch _, _, isMap := yamlKey(rest); {
		case rest == "":
			r.lines = r.lines[1:]
			if len(r.lines) > 0 && r.lines[0].indent > indent {
				v, err = r.block(r.lines[0].indent, depth+1)
			}
		case isMap || strings.HasPrefix(rest, "- "):
			// The item is a block of its own, whose first line stands behind the dash.
			inside := indent + len(line.text) - len(rest)
			r.lines[0] = yamlLine{line.number, inside, rest}
			v, err = r.block(inside, depth+1)
		default:
			r.lines = r.lines[1:]
			v, err = scalar(line, rest)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// yamlKey divides "key: value".
func yamlKey(text string) (key, value string, ok bool) {
	if strings.ContainsAny(text[:min(1, len(text))], `"'[{`) {
		return "", "", false
	}
	if key, ok = strings.CutSuffix(text, ":"); ok && !strings.Contains(key, ": ") {
		return strings.TrimSpace(key), "", true
	}
	key, value, ok = strings.Cut(text, ": ")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// scalar reads a scalar or a list in brackets.
func scalar(line yamlLine, text string) (any, error) {
	switch text[0] {
	case '[':
		inside, ok := strings.CutSuffix(text[1:], "]")
		if !ok {
			return nil, line.wrong("the list %.80q has no end on its line", text)
		}
		all := []any{}
		for item := range strings.SplitSeq(inside, ",") {
			if item = strings.TrimSpace(item); item == "" {
				return nil, line.wrong("the list %.80q has an empty item", text)
			}
			v, err := scalar(line, item)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case '"', '\'':
		if len(text) < 2 || text[len(text)-1] != text[0] || strings.ContainsAny(text[1:len(text)-1], string(text[0])+`\`) {
			return nil, line.wrong("the quotes of %.80s do not match, or it has quotes or backslashes inside", text)
		}
		return text[1 : len(text)-1], nil
	case '{', '&', '*', '!', '|', '>', '%', '@', '`':
		return nil, line.wrong("%.80q is a part of YAML that meta.yaml has no use for; write it as lines of key: value, or as [a, b, c]", text)
	}
	if text == "~" || text == "null" {
		return "", nil
	}
	return text, nil
}

package columns

import (
	"slices"
	"strings"
)

// missingWords stand for a missing value in text; they are those of pandas.
var missingWords = []string{"", "#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "-nan", "-NaN", "#NA"}

// unknownWords stand for an unknown label besides, without regard to case.
var unknownWords = []string{"unknown", "unlabeled", "unlabelled", "unlabel", "not labeled", "undefined", "none", "nan", "na", "n/a", "null", "nil", "<na>", "missing", "?", "-", "-1", "-1.0"}

// noPartWords say that a node is in no split.
var noPartWords = []string{"", "none", "nan", "na", "n/a", "null", "<na>", "unlabeled", "unlabelled", "unknown", "-", "unused"}

// Missing says which words mean that a value is missing.
type Missing struct{ values, labels, present map[string]bool }

// NewMissing returns the usual words and, besides, those of missing; the words of present are values.
func NewMissing(missing, present []string) *Missing {
	m := &Missing{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, w := range append(missing, missingWords...) {
		m.values[w] = true
	}
	for _, w := range missing {
		m.labels[strings.ToLower(w)] = true
	}
	for _, w := range unknownWords {
		m.labels[w] = true
	}
	for _, w := range present {
		m.present[w] = true
		delete(m.values, w)
	}
	return m
}

// Value reports whether a text is a missing value in any column.
func (m *Missing) Value(s string) bool { return m.values[s] }

// Label reports whether a text means that a label is unknown: a missing value, -1, or a word such as unknown.
func (m *Missing) Label(s string) bool {
	return m.values[s] || len(s) <= 12 && m.labels[strings.ToLower(s)] && !m.present[s] || len(m.labels) > len(unknownWords) && m.labels[strings.ToLower(s)] && !m.present[s]
}

// Part returns the number of the split in [Parts] that a word names, -1 for none.
func Part(word string) (part int, ok bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	switch word {
	case "train", "training", "trn":
		return 0, true
	case "val", "valid", "validation", "dev":
		return 1, true
	case "test", "testing", "tst":
		return 2, true
	}
	return -1, slices.Contains(noPartWords, word)
}

// NumberedPart returns the split that a number means in a column of kind Split that is numbered.
func NumberedPart(text string) (part int, ok bool) {
	switch strings.TrimSpace(text) {
	case "0", "0.0":
		return 0, true
	case "1", "1.0":
		return 1, true
	case "2", "2.0":
		return 2, true
	case "-1", "-1.0", "", "NaN", "nan":
		return -1, true
	}
	return 0, false
}

// Flag returns the value of a mask.
func Flag(text string) (set, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "0", "false", "0.0", "", "no", "f", "n":
		return false, true
	case "1", "true", "1.0", "yes", "t", "y":
		return true, true
	}
	return false, false
}

package tabular

import (
	"fmt"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Errorf returns an error of a conversion.
func Errorf(format string, args ...any) error { return phrase.Errorf("convert", format, args...) }

// Wrong returns an error about the content of a file or array.
func Wrong(name, format string, args ...any) error {
	return Errorf("reading %s: "+format, append([]any{name}, args...)...)
}

// Note passes a sentence to the user; to may be nil.
func Note(to func(string), format string, args ...any) {
	if to != nil {
		to(fmt.Sprintf(format, args...))
	}
}

package phrase

import (
	"errors"
	"os"
	"testing"
)

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"one":                            "one",
		"one\n":                          "one",
		"one\ntwo":                       "one; two",
		"one:\n\t two\r\n\nthree.\nfour": "one: two; three. four",
		"\n\none,\ntwo":                  "one, two",
		"rank 0: full\nfull\ntwo":        "rank 0: full; two",
	} {
		if got := Sentence(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	err := OneLine(errors.Join(errors.New("first"), os.ErrNotExist))
	if err.Error() != "first; file does not exist" || !errors.Is(err, os.ErrNotExist) || OneLine(nil) != nil {
		t.Errorf("%v", err)
	}
}

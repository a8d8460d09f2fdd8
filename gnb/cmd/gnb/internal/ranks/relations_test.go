package ranks

import (
	"flag"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// --relation-fanout adds the fanouts of a relation each time, or of several with semicolons.
func TestRelationFlag(t *testing.T) {
	parse := func(args ...string) (by map[string][]int, text string, err error) {
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		RelationFlag(fs, &by)
		err = fs.Parse(args)
		return by, fs.Lookup("relation-fanout").Value.String(), err
	}
	by, text, err := parse("--relation-fanout", "cites=15,full", "--relation-fanout=a:x=y:b=5,0; writes=5,5")
	want := map[string][]int{"cites": {15, -1}, "a:x=y:b": {5, 0}, "writes": {5, 5}}
	if err != nil || !maps.EqualFunc(by, want, slices.Equal[[]int]) || text != "a:x=y:b=5,0;cites=15,-1;writes=5,5" {
		t.Errorf("the fanouts are %v, %q, %v", by, text, err)
	}
	for args, want := range map[string]string{"cites": "its name, an equals sign", "=5": "its name, an equals sign", "cites=": "a number of neighbours", "cites=5;cites=6": "given twice", "cites=-2": "-2"} {
		if _, _, err := parse("--relation-fanout", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", args, err, want)
		}
	}
}

// Package runstest compares the runs that tests leave.
package runstest

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
)

// Open opens the run of a directory.
func Open(t *testing.T, dir string) *runs.Run {
	t.Helper()
	r, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Same fails unless two runs have the same weights, losses and values to the bit, and at least so many values.
func Same(t *testing.T, what string, got, want *runs.Run, least int) {
	t.Helper()
	for _, file := range [][2]string{{got.Weights(), want.Weights()}, {got.BestWeights(), want.BestWeights()}} {
		a, err1 := os.ReadFile(file[0])
		b, err2 := os.ReadFile(file[1])
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %s differs: %v, %v", what, filepath.Base(file[0]), err1, err2)
		}
	}
	a, err1 := got.Losses()
	b, err2 := want.Losses()
	if err1 != nil || err2 != nil || !slices.Equal(a, b) {
		t.Errorf("%s: the losses differ: %v, %v", what, err1, err2)
	}
	compared := 0
	for name, x := range want.Result.Values {
		if y, ok := got.Result.Values[name]; !ok || math.Float64bits(x) != math.Float64bits(y) {
			t.Errorf("%s: %s is %v, want %v", what, name, y, x)
		}
		compared++
	}
	if compared < least {
		t.Errorf("%s: only %d values were compared", what, compared)
	}
}

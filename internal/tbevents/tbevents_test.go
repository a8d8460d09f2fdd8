package tbevents_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/tbevents"
	"github.com/graphnb/graphnb/internal/tbevents/tbread"
)

func at(seconds float64) time.Time { return time.UnixMicro(int64(1e6 * (1700000000.25 + seconds))) }

// The file holds the same contents as a file that TensorBoard's own writer made of the same events
// (testdata/fixture.py).
func TestWriterAgreesWithTensorBoard(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "fixture.tfevents"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := tbevents.New(&b, at(0))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	check(w.HParams(at(0), "run-1", map[string]any{"lr": 0.01, "model": "sage", "residual": true, "hidden": 64.0}))
	for step := range int64(3) {
		check(w.Scalars(at(float64(step+1)), step+1, tbevents.Scalar{"loss/step", 1 / float64(step+1)}, tbevents.Scalar{"learning_rate", 0.01}))
	}
	check(w.Scalars(at(4), 300, tbevents.Scalar{"loss/step", math.NaN()}))
	check(w.Scalars(at(4), 300)) // writes nothing
	check(w.End(at(5), tbevents.Success))
	got, fixture := tbread.Lines(t, b.Bytes()), tbread.Lines(t, want)
	if len(got) != 8 || !slices.Equal(got, fixture) {
		t.Errorf("%d events:\n%s\nwant\n%s", len(got), strings.Join(got, "\n"), strings.Join(fixture, "\n"))
	}
	if p := tbread.Scalars(t, b.Bytes())["loss/step"]; len(p) != 4 || p[1] != (tbread.Point{Step: 2, Value: 0.5, Time: 1700000002.25}) || !math.IsNaN(p[3].Value) {
		t.Errorf("the losses read as %v", p)
	}
}

// Histograms, pictures and texts have the fields of TensorBoard's messages. The readers of TensorBoard 2.20 read a file of
// these three events with the same values, by hand; no test starts them.
func TestOtherValues(t *testing.T) {
	var b bytes.Buffer
	w, err := tbevents.New(&b, at(0))
	if err == nil {
		err = errors.Join(
			w.Histogram(at(1), 7, "log/h", tbevents.Histogram{Edges: []float64{1, 2, 4}, Counts: []float64{3, 5}, Sum: 20, Squares: 70}),
			w.PNG(at(2), 8, "log/p", 20, 10, []byte("png")),
			w.Text(at(3), 9, "log/t", "| a |"),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := tbread.Lines(t, b.Bytes())[2:]
	for i, want := range [][]string{
		{`.1.1 "log/h"`, `.5.1.5 "\t\x00`, `.2 int 7`},
		{`.5.1.1 "log/p"`, `.5.1.4 "\b\n\x10\x14\x18\x04\"\x03png"`, `.2 int 8`},
		{`.5.1.1 "log/t"`, `.5.1.8.1 int 7`, `.5.1.8.8 "| a |"`, `.5.1.9.1.1 "text"`},
	} {
		for _, part := range want {
			if !strings.Contains(lines[i], part) {
				t.Errorf("event %d lacks %s:\n%s", i, part, lines[i])
			}
		}
	}
}

func TestFileNamesAreInOrder(t *testing.T) {
	a, b := tbevents.FileName(at(0), "run.gnb"), tbevents.FileName(at(7), "a.gnb")
	if a >= b || a != "events.out.tfevents.1700000000.run.gnb" {
		t.Errorf("%s, then %s", a, b)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriterErrors(t *testing.T) {
	if _, err := tbevents.New(full{}, at(0)); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("writing to a full disk gave %v", err)
	}
	w, err := tbevents.New(&bytes.Buffer{}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.HParams(at(0), "g", map[string]any{"x": 3}); err == nil || !strings.Contains(err.Error(), "x is a int") {
		t.Errorf("an int: %v", err)
	}
}

package runs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/tbevents/tbread"
)

// A board follows a run whose metrics are truncated because another process resumes the run. The
// board starts over and has each step once.
func TestBoardFollowsCutMetrics(t *testing.T) {
	dir := t.TempDir()
	metrics := filepath.Join(dir, "metrics.jsonl")
	report := func(from, to int64) {
		t.Helper()
		f, err := os.OpenFile(metrics, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for s := from; s <= to; s++ {
			line, err := json.Marshal(Event{Kind: KindSteps, Time: float64(s), Records: []Step{{Total: s, At: [3]int{0, 0, int(s)}, Loss: float64(s)}}})
			if err == nil {
				_, err = f.Write(append(line, '\n'))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := newBoard(&Run{Dir: dir, Config: Config{ID: "r"}}, filepath.Join(dir, "tb"))
	if err != nil {
		t.Fatal(err)
	}
	more := func(want int) {
		t.Helper()
		if err := b.more(); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(b.file.Name())
		if err != nil {
			t.Fatal(err)
		}
		p := tbread.Scalars(t, raw)["loss/step"]
		if len(p) != want {
			t.Fatalf("%d steps, want %d", len(p), want)
		}
		for i := range p {
			if p[i].Step != int64(i+1) || p[i].Value != float64(i+1) {
				t.Errorf("step %d is %+v", i, p[i])
			}
		}
	}
	more(0) // no metrics yet
	report(1, 5)
	more(5)
	report(6, 9)
	more(9)
	text, err := os.ReadFile(metrics)
	if err == nil { // as a run truncates its metrics when it resumes from a checkpoint after step 3
		err = atomicfile.WriteFile(metrics, bytes.Join(bytes.SplitAfterN(text, []byte{'\n'}, 4)[:3], nil), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	more(3)
	report(4, 20)
	more(20)
	if err := b.close(nil); err != nil {
		t.Error(err)
	}
}

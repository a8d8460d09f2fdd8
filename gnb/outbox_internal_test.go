package gnb

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// openOutbox returns an outbox of rank 0, a function that returns the kinds of events that the launcher
// got, and the path of the metrics.
func openOutbox(t *testing.T) (o *outbox, got func() []string, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "metrics.jsonl")
	log, err := atomicfile.OpenLog(file, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var all bytes.Buffer
	o = &outbox{}
	o.open(func(lines []byte) error { all.Write(lines); return nil }, filepath.Dir(file), log)
	return o, func() (kinds []string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for line := range strings.Lines(all.String()) {
			_, rest, _ := strings.Cut(line, `"event":"`)
			kind, _, _ := strings.Cut(rest, `"`)
			kinds = append(kinds, kind)
		}
		return kinds
	}, file
}

func TestRareEventsTakeAlongWhatWaits(t *testing.T) {
	o, got, file := openOutbox(t)
	send := func(k runs.Kind) {
		t.Helper()
		if err := o.send(runs.Event{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	send(runs.KindPrint)
	send(runs.KindRate)
	send(runs.KindEpoch)
	o.record(runs.Step{Total: 1})
	o.record(runs.Step{Total: 2})
	if err := o.sendRecords(); err != nil {
		t.Fatal(err)
	}
	send(runs.KindRate)
	send(runs.KindPrint)
	if want := []string{"print", "epoch", "steps", "print", "rate"}; !slices.Equal(got(), want) {
		t.Errorf("the launcher got %q, want %q: of the rates only the last", got(), want)
	}
	b, err := os.ReadFile(file)
	if err != nil || bytes.Count(b, []byte("\n")) != 2 || !bytes.Contains(b, []byte(`"sum":"`)) {
		t.Errorf("the metrics are\n%s (%v), want the epoch and the steps, with checksums", b, err)
	}
}

func TestSyncSendsEverything(t *testing.T) {
	o, got, _ := openOutbox(t)
	if err := o.send(runs.Event{Kind: runs.KindPrint}); err != nil {
		t.Fatal(err)
	}
	o.record(runs.Step{Total: 1})
	if err := o.sync(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"print", "steps"}; !slices.Equal(got(), want) {
		t.Errorf("the launcher got %q, want %q", got(), want)
	}
}

func TestRemovedDirectory(t *testing.T) {
	o, _, file := openOutbox(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	o.record(runs.Step{Total: 1})
	if err := o.sync(); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("writing metrics into a removed directory gave %v", err)
	}
}

func TestLauncherThatIsGone(t *testing.T) {
	gone := errors.New("gone")
	var o outbox
	o.open(func([]byte) error { return gone }, "", nil)
	if err := o.send(runs.Event{Kind: runs.KindPrint}); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
}

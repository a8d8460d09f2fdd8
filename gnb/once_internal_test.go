package gnb

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

var nothing = Program("test.nothing", func(*Worker, int) error { return nil })

// notesOf returns the notes that a run prints at its start.
func notesOf(t *testing.T, o LaunchOptions) string {
	t.Helper()
	var notes []string
	o.Quiet, o.RunDir = true, t.TempDir()
	o.Events = func(e runs.Event) {
		if e.Kind == "start" {
			notes = append(notes, e.Text)
		}
	}
	if _, err := Launch(context.Background(), nothing, 0, o); err != nil {
		t.Fatal(err)
	}
	return strings.Join(notes, "\n")
}

// The reason for the lack of a GPU is printed once per process and once per kernel, whose cells are
// processes. The note that workers share cores is printed for each run.
func TestNotesAreSaidOnce(t *testing.T) {
	testneed.NotShort(t, "it starts several runs")
	t.Setenv("GNB_WORKERS", "")
	if _, err := device.Count(); err == nil {
		t.Skip("there is a GPU")
	}
	const note = "1 worker on the CPU: "
	forget := func() { entry.Forget() } // makes this process print notes as a new process does
	for _, kernel := range []string{"", t.TempDir()} {
		t.Setenv("GNB_KERNEL_DIR", kernel)
		forget()
		if first := notesOf(t, LaunchOptions{}); !strings.Contains(first, note) {
			t.Errorf("kernel %q: the first run prints %q", kernel, first)
		}
		if again := notesOf(t, LaunchOptions{}); strings.Contains(again, note) {
			t.Errorf("kernel %q: the second run prints %q", kernel, again)
		}
		forget()
		if other := notesOf(t, LaunchOptions{}); strings.Contains(other, note) != (kernel == "") {
			t.Errorf("kernel %q: another process prints %q", kernel, other)
		}
	}
	many := runtime.NumCPU() + 1
	for range 2 {
		if got := notesOf(t, LaunchOptions{Workers: many}); !strings.Contains(got, "workers share ") || !strings.Contains(got, "make no step faster") {
			t.Errorf("%d workers: %q", many, got)
		}
	}
	if got := notesOf(t, LaunchOptions{Workers: runtime.NumCPU()}); strings.Contains(got, "workers share ") {
		t.Errorf("with as many workers as cores, the run prints %q", got)
	}
}

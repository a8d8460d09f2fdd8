//go:build linux || darwin

package live

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
	"github.com/graphnb/graphnb/internal/testneed"
)

const cellEnv = "GNB_LIVE_TEST_CELL"

// fakeCell runs the program of a cell if a test has started this binary as one.
func fakeCell() bool {
	state := os.Getenv(cellEnv)
	if state == "" {
		return false
	}
	sink := New(screen.Options{})
	if _, ok := sink.(*notebook); !ok {
		os.Exit(7)
	}
	for i := range 20 {
		sink.Update(sampleRun(100, 2, float64(i)/20, screen.Running))
		time.Sleep(10 * time.Millisecond)
	}
	if err := sink.Close(sampleRun(100, 2, 1, state)); err != nil {
		_, _ = os.Stderr.WriteString("closed: " + err.Error() + "\n")
		os.Exit(3)
	}
	return true
}

// startCell starts this binary with GoNB's pipes and returns the paths of the pipes.
func startCell(t *testing.T, state string) (cmd *exec.Cmd, stderr *strings.Builder, out, back string) {
	t.Helper()
	dir := t.TempDir()
	out, back = filepath.Join(dir, "out"), filepath.Join(dir, "back")
	for _, p := range []string{out, back} {
		if err := unix.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.Command(os.Args[0])
	stderr = &strings.Builder{}
	cmd.Stderr = stderr
	cmd.Env = append(os.Environ(), cellEnv+"="+state, "GNB_HEADLESS=", protocol.GONB_PIPE_ENV+"="+out, protocol.GONB_PIPE_BACK_ENV+"="+back)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stderr, out, back
}

// The test sends outputs through gonbui's pipes to a stand-in for the kernel.
func TestRealPipes(t *testing.T) {
	testneed.Raced(t, "it waits for pipes")
	cmd, stderr, out, back := startCell(t, screen.Done)
	r, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	w, err := os.OpenFile(back, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	dec, enc := gob.NewDecoder(r), gob.NewEncoder(w)
	d, synced := &screentest.Tape{}, false
	for {
		m := &protocol.DisplayData{}
		if err := dec.Decode(m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if v, ok := m.Data[protocol.MIMECommValue].(protocol.CommValue); ok && v.Address == protocol.GonbuiSyncAddress {
			synced = true
			if err := enc.Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: v.Value}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if synced {
			t.Error("output after the sync")
		}
		if err := d.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the cell ended with %v: %s", err, stderr)
	}
	o := d.Outputs()
	if !synced || len(o) != 2 || len(d.All()) < 3 { // a busy machine draws less often
		t.Fatalf("the kernel got synced %v, %d messages, %d outputs", synced, len(d.All()), len(o))
	}
	checkFigure(t, o[0])
	screentest.CheckHTML(t, screentest.HTMLOf(o[1]))
	screentest.CheckHTML(t, screentest.HTMLOf(d.All()[0]))
}

// A kernel that ends during a run does not disturb the run.
func TestKernelGone(t *testing.T) {
	testneed.Raced(t, "it waits for a kernel that has ended")
	cmd, stderr, out, back := startCell(t, screen.Done)
	r, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(back, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(r).Decode(&protocol.DisplayData{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(stderr.String(), "closed: the notebook's display pipe is broken") {
		t.Errorf("the cell ended with %v: %s", err, stderr)
	}
}

// A kernel that never opens its pipes delays the end of an interrupted run at most as long as the
// kernel would wait for the end.
func TestKernelStuck(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 1.5 seconds")
	}
	cmd, stderr, _, _ := startCell(t, screen.Interrupted)
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(stderr.String(), "did not accept the final state in time") {
		t.Errorf("the cell ended with %v: %s", err, stderr)
	}
}

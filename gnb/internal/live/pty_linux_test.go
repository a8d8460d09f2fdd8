package live

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// pty opens a pseudo terminal with the given number of columns.
func pty(t *testing.T, cols uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: cols}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestPty(t *testing.T) {
	testneed.Raced(t, "it waits for a terminal")
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("GNB_HEADLESS", "")
	for _, cols := range []uint16{120, 72, 40} {
		t.Run(fmt.Sprint(cols), func(t *testing.T) {
			master, slave := pty(t, cols)
			read := make(chan string)
			go func() {
				b, _ := io.ReadAll(master) // reading ends with EIO when the other side closes
				read <- string(b)
			}()
			sink := New(screen.Options{Out: slave})
			if _, ok := sink.(*terminal); !ok {
				t.Fatalf("the sink of a terminal is %T", sink)
			}
			for i := range 8 {
				s := sampleRun(1000, 2, 0.3+float64(i)/20, screen.Running)
				s.Text = nil
				sink.Update(s)
				sink.Print(fmt.Sprintf("line %d", i))
				time.Sleep(20 * time.Millisecond)
			}
			final := sampleRun(100, 2, 1, screen.Done)
			final.Text, final.Title = nil, "x"
			final.Workers, final.Metrics, final.Loss = nil, nil, nil
			for i := range final.Rates {
				final.Rates[i].Limit = 1e13 // as wide as fits in 40 columns
			}
			if err := sink.Close(final); err != nil {
				t.Fatal(err)
			}
			if err := slave.Close(); err != nil {
				t.Fatal(err)
			}
			out := <-read
			if err := master.Close(); err != nil {
				t.Fatal(err)
			}
			sc := screentest.Terminal(t, out, int(cols))
			for i := range 8 {
				if sc[i] != fmt.Sprintf("line %d", i) {
					t.Errorf("line %d of the screen is %q", i, sc[i])
				}
			}
			end := len(sc) - 1
			if end < 10 || end > 12 || !strings.HasPrefix(sc[8], "x: done, epoch 20/20") ||
				strings.Join(sc[9:end], "; ") != ratesText(&final) || sc[end] != "" {
				t.Errorf("the screen ends in %q", sc[8:])
			}
			if os.Getenv("GNB_LOOK") != "" {
				t.Logf("%q", out)
			}
		})
	}
}

func TestHeadlessTerminal(t *testing.T) {
	t.Setenv("GNB_HEADLESS", "1")
	master, slave := pty(t, 80)
	sink := New(screen.Options{Out: slave})
	if _, ok := sink.(*plain); !ok {
		t.Errorf("the sink of a headless terminal is %T", sink)
	}
	if err := sink.Close(Snapshot{}); err != nil {
		t.Error(err)
	}
	if err := slave.Close(); err != nil {
		t.Error(err)
	}
	if err := master.Close(); err != nil {
		t.Error(err)
	}
}

package convert

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/machine"
)

// helperEnv turns the test binary into a process that converts: its value is the source, and the
// variable with the suffix _DST is the destination.
const helperEnv = "GNB_CONVERT_TEST"

type helperResult struct {
	Error string
	Peak  int64
}

func TestMain(m *testing.M) {
	src := os.Getenv(helperEnv)
	if src == "" {
		os.Exit(m.Run())
	}
	debug.SetGCPercent(25) // as gnb data convert does
	_, err := Convert(context.Background(), src, os.Getenv(helperEnv+"_DST"), Options{Features: os.Getenv(helperEnv + "_FEATURES")})
	r := helperResult{Peak: machine.PeakRSS()}
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		os.Exit(3)
	}
}

// deflated returns a compressed .npz file of the arrays.
func deflated(t testing.TB, arrays map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range arrays {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Deflate})
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A conversion that is killed at any moment leaves either no destination or a complete dataset, and
// does not block the next conversion.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	var text strings.Builder
	for i := range 60_000 {
		text.WriteString(itoa(i) + " " + itoa((i*7+1)%60_000) + "\n")
	}
	src := one(t, "g.txt.gz", gz(text.String()))
	parent := t.TempDir()
	dst := filepath.Join(parent, "out")
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"="+src, helperEnv+"_DST="+dst, helperEnv+"_FEATURES=random:60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	began := time.Now()
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(began)
	killed, finished := 0, 0
	for i := range 15 {
		if err := os.RemoveAll(dst); err != nil {
			t.Fatal(err)
		}
		cmd := start()
		time.Sleep(time.Duration(rand.Int64N(int64(whole) * 5 / 4)))
		_ = cmd.Process.Kill() // the process may have ended
		_ = cmd.Wait()         // it returns the error of the signal
		for _, name := range list(t, parent) {
			path := filepath.Join(parent, name)
			switch {
			case name == "out":
				d, err := dataset.Open(path)
				if err != nil {
					t.Fatalf("run %d left a destination that does not open: %v", i, err)
				}
				if err := d.Check(t.Context()); err != nil || d.Nodes() != 60_000 || d.FeatureDim() != 60 {
					t.Fatalf("run %d left a destination that is not whole: %s, %v", i, d, err)
				}
				_ = d.Close()
				finished++
			case strings.HasPrefix(name, ".out.tmp-"):
				killed++
			default:
				t.Errorf("run %d left %s", i, name)
			}
		}
	}
	t.Logf("a conversion takes %v; of 15 killed conversions, %d had finished and %d were writing", whole, finished, killed)
	if err := os.RemoveAll(dst); err != nil {
		t.Fatal(err)
	}
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	if left := list(t, parent); len(left) != 1 {
		t.Errorf("after a conversion that ran to its end, the folder holds %v; want only the dataset", left)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A cancelled conversion ends soon, with the context's error.
func TestCancelled(t *testing.T) {
	src := one(t, "g.txt", strings.Repeat("0 1\n1 2\n", 1<<19))
	for _, files := range []string{src, putFile(t, saintFiles()), putFile(t, ogbFiles()), putFile(t, numpyFiles())} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dst := filepath.Join(t.TempDir(), "out")
		if _, err := Convert(ctx, files, dst, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error is %v", files, err)
		}
		if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the destination exists (%v)", files, err)
		}
	}
	// Reading and each later stage report their progress once, up to the end.
	last := map[string][2]int64{}
	var stages []string
	note := func(stage string, done, total int64) {
		if len(stages) == 0 || stages[len(stages)-1] != stage {
			stages = append(stages, stage)
		}
		last[stage] = [2]int64{done, total}
	}
	if _, err := Convert(t.Context(), src, filepath.Join(t.TempDir(), "out"), Options{
		Progress: func(done, total int64) { note("read", done, total) }, Finish: note,
	}); err != nil || strings.Join(stages, " ") != "read build check write" {
		t.Errorf("stages %v (%v)", stages, err)
	}
	for stage, l := range last {
		if l[0] != l[1] || l[0] == 0 {
			t.Errorf("%s ended at %d of %d", stage, l[0], l[1])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{Progress: func(done, total int64) {
		if done > total || done <= 0 {
			t.Errorf("%d of %d bytes", done, total)
		}
		cancel()
	}}
	if _, err := Convert(ctx, src, filepath.Join(t.TempDir(), "out"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it read: the error is %v", err)
	}
	for _, at := range []string{"build", "check", "write"} { // cancelled in any stage, the conversion ends soon and leaves nothing behind
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := ""
		dst := filepath.Join(t.TempDir(), "out")
		_, err := Convert(ctx, src, dst, Options{Finish: func(stage string, done, total int64) {
			if done > total || total <= 0 {
				t.Errorf("%s: %d of %d", stage, done, total)
			}
			if told = stage; stage == at {
				cancel()
			}
		}})
		if _, there := os.Lstat(dst); !errors.Is(err, context.Canceled) || told != at && at != "build" || !errors.Is(there, fs.ErrNotExist) {
			t.Errorf("cancelled at %s it ends with %v after %q", at, err, told)
		}
	}
}

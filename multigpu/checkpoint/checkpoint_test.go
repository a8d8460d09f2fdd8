package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/safetensors"
)

const envSaver = "CHECKPOINT_TEST_SAVER"

// The test binary serves as a process that saves checkpoints forever, until the test kills it.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envSaver); dir != "" {
		for step := int64(1); ; step++ {
			if _, err := Save(dir, step, weights(step, 20_000), state{Step: step}, 2); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			if step == 1 {
				fmt.Println("first")
			}
		}
	}
	os.Exit(m.Run())
}

type state struct {
	Step int64
	Note string
}

func weights(step int64, n int) []safetensors.Tensor {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(step)*1000 + float32(i%997)
	}
	return []safetensors.Tensor{
		{Name: "convs.0.weight", Shape: []int{n / 2, 2}, F32: w[:n/2*2]},
		{Name: "adam.m", Shape: []int{0}},
	}
}

func save(t *testing.T, dir string, step int64, keep int) string {
	t.Helper()
	path, err := Save(dir, step, weights(step, 10), state{step, "é"}, keep)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	path := save(t, dir, 12, 3)
	if filepath.Base(path) != "step-0000000012.safetensors" {
		t.Errorf("the path is %s", path)
	}
	var st state
	got, err := Load(path, &st)
	if err != nil {
		t.Fatal(err)
	}
	want := weights(12, 10)
	if st != (state{12, "é"}) || len(got) != 2 || !slices.Equal(got[0].F32, want[0].F32) || !slices.Equal(got[0].Shape, want[0].Shape) || got[1].Name != "adam.m" {
		t.Errorf("got %v, %v", st, got)
	}
	latest, step, damaged, err := Latest(dir)
	if latest != path || step != 12 || len(damaged) != 0 || err != nil {
		t.Errorf("the latest is %s, %d, %v, %v", latest, step, damaged, err)
	}
	if _, err := Load(path, &[]int{}); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("loading a state into the wrong type: %v", err)
	}
}

func TestNone(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "missing")} {
		if path, _, _, err := Latest(d); !errors.Is(err, ErrNone) || path != "" {
			t.Errorf("got %q, %v", path, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "missing"), nil); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if _, err := Save(dir, -1, nil, nil, 0); err == nil {
		t.Error("a negative step gave no error")
	}
	if _, err := Save(dir, 1, nil, math.NaN(), 0); err == nil {
		t.Error("a state that JSON cannot express gave no error")
	}
}

func TestPruning(t *testing.T) {
	dir := t.TempDir()
	for step := int64(1); step <= 5; step++ {
		save(t, dir, step*10, 2)
	}
	want := []string{"step-0000000040.safetensors", "step-0000000050.safetensors"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
	// A run that resumes from an earlier step keeps the checkpoint that it just wrote, though later
	// steps exist.
	save(t, dir, 15, 1)
	want = []string{"step-0000000015.safetensors", "step-0000000050.safetensors"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
	// Pruning keeps files of other programs and removes temporary files of a killed process.
	for _, name := range []string{"notes.txt", "step-7.safetensors", ".step-0000000008.safetensors.gnb-tmp-123"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(t, dir, 60, 1)
	want = []string{"notes.txt", "step-0000000060.safetensors", "step-7.safetensors"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
	save(t, dir, 61, 0)
	if got := names(t, dir); len(got) != 4 {
		t.Errorf("kept %v", got)
	}
}

// A file with any changed byte, or cut anywhere, is never taken for valid. Latest returns the
// checkpoint before it, with a warning that names the damaged file.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	good := save(t, dir, 1, 0)
	bad := save(t, dir, 2, 0)
	whole, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(bad, content, 0o600); err != nil {
			t.Fatal(err)
		}
		path, step, damaged, err := Latest(dir)
		if path != good || step != 1 || err != nil {
			t.Fatalf("%s: Latest returned %q, %v", what, path, err)
		}
		if len(damaged) != 1 || !errors.Is(damaged[0], ErrDamaged) || !strings.Contains(damaged[0].Error(), bad) {
			t.Fatalf("%s: the damaged checkpoints are reported as %v", what, damaged)
		}
	}
	header := 8 + int(binary.LittleEndian.Uint64(whole))
	for i := range whole {
		if i < header && whole[i] == ' ' {
			continue // spaces that pad the header carry no data
		}
		flipped := slices.Clone(whole)
		flipped[i] ^= 1
		check(fmt.Sprintf("byte %d of %d flipped (%q)", i, len(whole), whole[i]), flipped)
	}
	for n := range whole {
		check(fmt.Sprintf("cut to %d of %d", n, len(whole)), whole[:n])
	}
	if err := os.WriteFile(good, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, damaged, err := Latest(dir); !errors.Is(err, ErrNone) || len(damaged) != 2 {
		t.Errorf("Latest without any valid checkpoint returned %v, %v", damaged, err)
	}
	plain := filepath.Join(dir, "step-0000000003.safetensors")
	if err := safetensors.WriteFile(plain, weights(3, 4), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(plain, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("loading a safetensors file that is not a checkpoint gave %v", err)
	}
}

// A process killed with SIGKILL during a save leaves the earlier checkpoints intact.
func TestKillWhileSaving(t *testing.T) {
	n := 20
	if testing.Short() {
		n = 4
	}
	for i := range n {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envSaver+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 6)
		if _, err := out.Read(b); err != nil || string(b) != "first\n" {
			t.Fatalf("the process printed %q, %v", b, err)
		}
		time.Sleep(time.Duration(i*i*97%20_000) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the process ends by the kill
		path, step, damaged, err := Latest(dir)
		if err != nil || len(damaged) > 0 {
			t.Fatalf("after the kill Latest returned %v, damaged %v", err, damaged)
		}
		var st state
		got, err := Load(path, &st)
		if err != nil || st.Step != step || !slices.Equal(got[0].F32, weights(step, 20_000)[0].F32) {
			t.Fatalf("step %d: %v, state %v", step, err, st)
		}
		if _, err := Save(dir, step+1, weights(step+1, 4), state{}, 2); err != nil {
			t.Fatal(err)
		}
		for _, name := range names(t, dir) {
			if strings.HasPrefix(name, ".") {
				t.Errorf("the next save did not remove %s", name)
			}
		}
	}
}

// Checkpoints written in the old format, without a seal, are read, and damage to them is detected.
func TestOldCheckpoints(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	meta := map[string]string{keyStep: "4", keyState: `{"Step":4}`, keyOld: digestOld(4, weights(4, 8), `{"Step":4}`)}
	if err := safetensors.Write(&b, weights(4, 8), meta); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(dir, 4), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var st state
	if got, err := Load(Path(dir, 4), &st); err != nil || st.Step != 4 || !slices.Equal(got[0].F32, weights(4, 8)[0].F32) {
		t.Fatal(got, st, err)
	}
	for i := b.Len() - 32; i < b.Len(); i++ {
		bad := bytes.Clone(b.Bytes())
		bad[i] ^= 1
		if err := os.WriteFile(Path(dir, 4), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Path(dir, 4), &st); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

// Two different contents never have the same digest: moving bytes over a boundary between parts
// changes it.
func TestDigestSeparates(t *testing.T) {
	seen := map[string]string{}
	add := func(what string, step int64, tensors []safetensors.Tensor, state string) {
		t.Helper()
		d := digestOld(step, tensors, state)
		if other, twice := seen[d]; twice {
			t.Errorf("%s and %s have the same digest", what, other)
		}
		seen[d] = what
	}
	f := []float32{1, 2, 3, 4}
	add("nothing", 0, nil, "")
	add("a step", 1, nil, "")
	add("a state", 0, nil, "1")
	add("[4]", 0, []safetensors.Tensor{{Name: "a", Shape: []int{4}, F32: f}}, "")
	add("[2,2]", 0, []safetensors.Tensor{{Name: "a", Shape: []int{2, 2}, F32: f}}, "")
	add("named b", 0, []safetensors.Tensor{{Name: "b", Shape: []int{4}, F32: f}}, "")
	add("in two", 0, []safetensors.Tensor{{Name: "a", Shape: []int{2}, F32: f[:2]}, {Name: "", Shape: []int{2}, F32: f[2:]}}, "")
	add("in two otherwise", 0, []safetensors.Tensor{{Name: "", Shape: []int{2}, F32: f[:2]}, {Name: "a", Shape: []int{2}, F32: f[2:]}}, "")
	add("minus zero", 0, []safetensors.Tensor{{Name: "a", Shape: []int{1}, F32: []float32{float32(math.Copysign(0, -1))}}}, "")
	add("zero", 0, []safetensors.Tensor{{Name: "a", Shape: []int{1}, F32: []float32{0}}}, "")
}

// After saves in any order, the newest checkpoint is found and at most keep+1 checkpoints exist.
func TestSavesInAnyOrder(t *testing.T) {
	top, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(top, strconv.Itoa(runs))
		keep := rapid.IntRange(1, 3).Draw(t, "keep")
		there := map[int64]bool{}
		for _, step := range rapid.SliceOfN(rapid.Int64Range(0, 12), 1, 8).Draw(t, "steps") {
			if _, err := Save(dir, step, weights(step, 2), strconv.FormatInt(step, 10), keep); err != nil {
				t.Fatal(err)
			}
			there[step] = true
			steps, err := list(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(steps) > keep+1 || !slices.Contains(steps, step) {
				t.Fatalf("after step %d with %d kept: %v", step, keep, steps)
			}
			_, latest, damaged, err := Latest(dir)
			if err != nil || len(damaged) > 0 || latest != steps[len(steps)-1] || !there[latest] {
				t.Fatalf("the latest is %d of %v (%v, %v)", latest, steps, damaged, err)
			}
		}
	})
}

// Save replaces a link that stands in a checkpoint's place and leaves the link's target unchanged.
func TestSaveReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, Path(dir, 7)); err != nil {
		t.Fatal(err)
	}
	path, err := Save(dir, 7, nil, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", path, info.Mode(), err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("the link's target has %q, %v", b, err)
	}
	if _, step, _, err := Latest(dir); err != nil || step != 7 {
		t.Errorf("the newest checkpoint is of step %d, %v", step, err)
	}
}

package saving

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// run holds the state that a Saver saves in these tests: two weights and a position.
type run struct {
	Saver
	cursor  Cursor
	weights []float32
	events  []string
	saved   []string // the files written
}

func newRun(dir string, every int) *run {
	r := &run{weights: []float32{1, 2}}
	r.Open(Options{
		Dir: dir, Every: every, Keep: 2,
		CatchUp: func() { r.events = append(r.events, "catch up") },
		State: func() (State, []safetensors.Tensor, error) {
			return State{Layout: philox.LayoutVersion, Position: r.cursor.Pos, Sums: r.cursor.Sums},
				[]safetensors.Tensor{{Name: "model0.w", Shape: []int{2}, F32: r.weights}}, nil
		},
		Settle: func() error { r.events = append(r.events, "settle"); return nil },
		Saved:  func(path string, at Position) error { r.saved = append(r.saved, path); return nil },
	})
	return r
}

// step changes every part of the state in a checkpoint.
func (r *run) step() {
	r.cursor.Pos.Total++
	r.cursor.EndIteration()
	r.weights[0]++
}

func resume(t *testing.T, path string) (*run, *State) {
	t.Helper()
	r := newRun(filepath.Dir(filepath.Dir(path)), 0)
	st, err := r.Resume(path, r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return r, st
}

func TestSaveAndResume(t *testing.T) {
	r := newRun(t.TempDir(), 0)
	best, worst := 3, math.Inf(1)
	for name, v := range map[string]any{"best": &best, "worst": &worst} {
		if err := r.Kept.Add(name, v, "test.go:1"); err != nil {
			t.Fatal(err)
		}
	}
	r.Best.Improve(0, 0.5, 2)
	r.step()
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"catch up", "settle"}; !slices.Equal(r.events, want) {
		t.Errorf("before a checkpoint: %q, want %q", r.events, want)
	}
	again, st := resume(t, r.saved[0])
	if st.Position != r.cursor.Pos || !again.Resumed.There() {
		t.Errorf("resumed at %+v, want %+v", st.Position, r.cursor.Pos)
	}
	if epoch, ok := again.Best.Epoch(0); epoch != 2 || !ok {
		t.Errorf("the best epoch is %d (%v), want 2", epoch, ok)
	}
	if again.Best.Improve(0, 0.5, 3) || !again.Best.Improve(0, 0.6, 3) {
		t.Error("the best value was not resumed")
	}
	best, worst = 0, 0
	if err := again.Kept.Add("worst", &worst, "test.go:2"); err != nil || !math.IsInf(worst, 1) {
		t.Errorf("the kept value is %v (%v), want +Inf", worst, err)
	}
	// A value that the program has not yet requested stays in later checkpoints.
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	third, _ := resume(t, again.saved[0])
	if err := third.Kept.Add("best", &best, "test.go:3"); err != nil || best != 3 {
		t.Errorf("the kept value is %d, %v; want 3", best, err)
	}
}

// An interrupt saves the prepared boundary and none of the program's later changes.
func TestSavePreparedIsTheBoundary(t *testing.T) {
	r := newRun(t.TempDir(), 0)
	if err := r.SavePrepared(); err != nil || len(r.saved) > 0 {
		t.Fatalf("before the first boundary saving gave %v and wrote %q", err, r.saved)
	}
	r.step()
	if err := r.Prepare(true); err != nil {
		t.Fatal(err)
	}
	prepared := r.cursor.Pos
	r.step()
	if err := r.SavePrepared(); err != nil {
		t.Fatal(err)
	}
	again, st := resume(t, r.saved[0])
	if w := again.Resumed.tensors["model0.w"]; st.Position != prepared || !slices.Equal(w, []float32{2, 2}) {
		t.Errorf("saved %+v with weights %v, want %+v with [2 2]", st.Position, w, prepared)
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		steps []int64 // the steps up to 10 at which a checkpoint is due
		on    bool
	}{
		{"every 4 steps", 4, []int64{4, 8}, true},
		{"once a minute", 0, nil, true},
		{"never", -1, nil, false},
	} {
		r := newRun(t.TempDir(), c.every)
		var due []int64
		for range 10 {
			if r.step(); r.On() && r.Due(r.cursor.Pos.Total) {
				due = append(due, r.cursor.Pos.Total)
				if err := r.Save(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(due, c.steps) || r.On() != c.on {
			t.Errorf("%s: due after steps %v (on: %v), want %v (%v)", c.name, due, r.On(), c.steps, c.on)
		}
	}
	if newRun("", 1).On() {
		t.Error("a run without a directory writes checkpoints")
	}
}

func TestLeaveSavesOnce(t *testing.T) {
	why, full := errors.New("interrupted"), errors.New("disk full")
	r := newRun(t.TempDir(), 0)
	calls := 0
	for range 2 {
		if err := r.Leave(why, func() error { calls++; return full }); !errors.Is(err, full) {
			t.Errorf("left with %v", err)
		}
	}
	if calls != 1 {
		t.Errorf("%d checkpoints, want 1", calls)
	}
}

func TestKeptRefuses(t *testing.T) {
	r := newRun(t.TempDir(), 0)
	var x int
	if err := r.Kept.Add("x", &x, "a.go:1"); err != nil {
		t.Fatal(err)
	}
	ch := make(chan int)
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"value", x, "it takes a pointer"},
		{"nil", (*int)(nil), "it takes a pointer"},
		{"x", &x, "called twice"},
		{"channel", &ch, "cannot be written"},
	} {
		if err := r.Kept.Add(c.name, c.v, "a.go:2"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "a.go:2") {
			t.Errorf("%s: %v, want an error with %q and the place", c.name, err, c.want)
		}
	}
}

func TestBestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "best.safetensors")
	r := newRun(dir, 0)
	r.cursor.Pos.Total = 5
	w := []float32{1, 2, 3}
	put := func(step string) {
		t.Helper()
		r.Best.Put(path, map[string]string{MetaStep: step}, []safetensors.Tensor{{Name: "w", Shape: []int{3}, F32: w}})
		if err := r.Best.Write(true); err != nil {
			t.Fatal(err)
		}
	}
	put("5")
	w[0] = 9 // the Saver has its own copy
	ts, _, err := safetensors.ReadFile(path)
	if err != nil || !slices.Equal(ts[0].F32, []float32{1, 2, 3}) {
		t.Fatalf("the file has %v, %v", ts, err)
	}
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	_, st := resume(t, r.saved[0])
	tensors, err := checkpoint.Load(r.saved[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func() (notes []string, err error) { return st.CheckBestFiles(tensors, dir) }
	if notes, err := check(); err != nil || len(notes) > 0 {
		t.Errorf("with the checkpoint's own file: %v, %v", notes, err)
	}
	put("7")
	if notes, err := check(); err != nil || len(notes) > 0 {
		t.Errorf("with a later file of the run: %v, %v", notes, err)
	}
	put("3")
	if _, err := check(); err == nil || !strings.Contains(err.Error(), "not the file that the run wrote") {
		t.Errorf("with an earlier file: %v", err)
	}
	if err := os.WriteFile(path, []byte("no weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := check(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("with a damaged file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if notes, err := check(); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "is missing") {
		t.Errorf("no file: %v, %v", notes, err)
	}
}

// Best weights of steps that a resumed run has abandoned give way to those of its checkpoint, whether the checkpoint is of the
// boundary at which the program is or of a copy of an earlier one.
func TestBestWeightsAreTheCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []string // what happens, in order: b improves the best weights, s saves, p copies the boundary, c saves the copy
		want []float32
	}{
		{"saved, then improved", []string{"b", "s", "b"}, []float32{1}},
		{"copied, then improved, then the copy saved", []string{"b", "p", "b", "c"}, []float32{1}},
		{"several copies", []string{"b", "p", "b", "b", "p", "b", "b", "c"}, []float32{3}},
		{"copied after a save", []string{"b", "p", "s", "b", "p", "b", "c"}, []float32{2}},
		{"saved before the first best weights", []string{"s", "b"}, nil},
		{"copied before the first best weights", []string{"p", "b", "c"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t.TempDir(), 0)
			path, bests := filepath.Join(r.Dir, "best.safetensors"), float32(0)
			improve := func(r *run) {
				bests++
				r.Best.Improve(0, float64(bests), int(bests))
				r.Best.Put(path, map[string]string{MetaStep: "9"}, []safetensors.Tensor{{Name: "w", Shape: []int{1}, F32: []float32{bests}}})
				if err := r.Best.Write(true); err != nil {
					t.Fatal(err)
				}
			}
			for _, do := range c.at {
				var err error
				switch r.step(); do {
				case "b":
					improve(r)
				case "s":
					err = r.Save()
				case "p":
					err = r.Prepare(true)
				case "c":
					err = r.SavePrepared()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			again, _ := resume(t, r.saved[len(r.saved)-1])
			if before, err := os.ReadFile(path); err != nil {
				t.Fatal(err)
			} else if err := again.Best.Write(true); err != nil {
				t.Fatal(err)
			} else if now, err := os.ReadFile(path); err != nil || !slices.Equal(before, now) {
				t.Error("a run that has not begun changed the file")
			}
			for range 2 { // the second time without a file of the run that was killed
				again.Best.Begin()
				if err := again.Best.Write(true); err != nil {
					t.Fatal(err)
				}
				ts, _, err := safetensors.ReadFile(path)
				if c.want == nil {
					if !errors.Is(err, os.ErrNotExist) {
						t.Errorf("the file has %v, %v; want none", ts, err)
					}
					return
				}
				if err != nil || !slices.Equal(ts[0].F32, c.want) {
					t.Fatalf("the file has %v, %v; want %v", ts, err, c.want)
				}
				if err := again.Save(); err != nil { // which has them too, though the program has not put any
					t.Fatal(err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				again, _ = resume(t, again.saved[0])
			}
		})
	}
}

func TestResumedRefusesWhatDoesNotFit(t *testing.T) {
	r := newRun(t.TempDir(), 0)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	again, _ := resume(t, r.saved[0])
	for name, c := range map[string]struct {
		model nn.Model
		want  string
	}{
		"other shapes": {nn.NewMLPModel(nn.ModelConfig{In: 3, Hidden: 2, Out: 2, Layers: 1}), "does not fit"},
	} {
		params, err := nn.Collect(c.model)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Resumed.Parameters("mlp", "model0.", params); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := again.Resumed.Parameters("mlp", "model1.", params); err != nil {
			t.Errorf("restoring a network that the checkpoint lacks gave %v", err)
		}
	}
	// The checkpoint has another layout of random numbers.
	path, err := checkpoint.Save(t.TempDir(), 1, nil, State{Layout: -1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(path, ""); err == nil || !strings.Contains(err.Error(), "layout") {
		t.Errorf("resuming with another layout of random numbers gave %v", err)
	}
}

func TestResumedLearningRate(t *testing.T) {
	at := func(lr float64) *runfile.Number { x := runfile.Number(lr); return &x }
	for _, c := range []struct {
		name      string
		saved     float64
		madeWith  *runfile.Number
		start     float64
		changed   bool
		continues float64
	}{
		{"same start", 0.005, at(0.01), 0.01, false, 0.005},
		{"halved by SetLR, other start", 0.005, at(0.01), 0.1, true, 0.05},
		{"start not recorded", 0.005, nil, 0.1, false, 0.005},
		{"start not recorded, settings changed", 0.005, nil, 0.1, true, 0.1},
		{"start was 0", 0.005, at(0), 0.1, true, 0.1},
	} {
		st := Optimizer{LR: runfile.Number(c.saved), Start: c.madeWith}
		if got := st.resumedLR(c.start, c.changed); math.Abs(got-c.continues) > 1e-15 {
			t.Errorf("%s: %v, want %v", c.name, got, c.continues)
		}
	}
}

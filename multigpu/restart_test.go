package multigpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/multigpu/cluster"
	"github.com/graphnb/graphnb/multigpu/collective"
)

func TestRestarts(t *testing.T) {
	lost := func(rank, step int) error { return &WorkerError{Rank: rank, Step: step} }
	program := func(rank, step int) error { return &WorkerError{Rank: rank, Step: step, Cause: CauseProgram} }
	failed := &WorkerError{Rank: 1, Step: 4, Cause: CauseError}
	for _, tc := range []struct {
		name  string
		max   int
		ranks int
		world int
		ends  []error
		next  []int  // number of workers of each start after the first; 0 ends the run
		why   string // reason of the run's end
	}{
		{"never", 0, 2, 2, []error{lost(1, 3)}, []int{0}, ""},
		{"no failure", 3, 2, 2, []error{nil}, []int{0}, ""},
		{"an interrupt", 3, 2, 2, []error{&Interrupted{Err: lost(1, 3)}}, []int{0}, ""},
		{"another error", 3, 2, 2, []error{errors.New("no memory for a process")}, []int{0}, ""},
		{"different ranks", 5, 2, 2, []error{lost(0, 1), lost(1, 2)}, []int{2, 2}, ""},
		{"one rank again and again", 9, 8, 8, []error{lost(3, 1), lost(3, 1), lost(3, 1), lost(3, 1), lost(1, 9), lost(0, 9), lost(1, 10), lost(0, 11)}, []int{8, 4, 4, 2, 2, 2, 1, 1}, ""},
		{"a prime number of ranks", 3, 7, 7, []error{lost(6, 1), lost(6, 5)}, []int{7, 1}, ""},
		{"one worker stays one", 3, 1, 1, []error{lost(0, 1), lost(0, 1), lost(0, 1)}, []int{1, 1, 1}, ""},
		{"more often than allowed", 2, 2, 2, []error{lost(0, 1), lost(1, 2), lost(0, 3)}, []int{2, 2, 0}, "all 2 restarts are used up"},
		{"an error of the program", 3, 2, 2, []error{failed}, []int{0}, "an error of the program"},
		{"a panic at another step", 3, 2, 2, []error{program(0, 1), program(1, 2)}, []int{2, 2}, ""},
		{"a panic at the same step", 3, 2, 2, []error{program(0, 5), program(1, 5)}, []int{2, 0}, "same step as before"},
		{"a panic where a worker was lost", 3, 2, 2, []error{lost(0, 5), program(0, 5)}, []int{2, 0}, "same step as before"},
		{"wrapped", 3, 2, 2, []error{fmt.Errorf("outer: %w", lost(1, 3))}, []int{2}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Restarts{Max: tc.max, Ranks: tc.ranks}
			var got []int
			world, why := tc.world, ""
			for _, err := range tc.ends {
				var next int
				next, why = r.Next(world, err)
				got = append(got, next)
				world = next
			}
			if !slices.Equal(got, tc.next) || !strings.Contains(why, tc.why) || tc.why == "" && why != "" {
				t.Errorf("workers of the next starts are %v (%q), want %v (%q)", got, why, tc.next, tc.why)
			}
			if n := len(slices.DeleteFunc(got, func(n int) bool { return n == 0 })); r.Made() != n {
				t.Errorf("%d restarts were made, want %d", r.Made(), n)
			}
		})
	}
}

// deviceError is an error of a GPU.
type deviceError struct{ lost bool }

func (deviceError) Error() string { return "the kernel failed" }
func (e deviceError) Lost() bool  { return e.lost }

func TestCauseOfErrors(t *testing.T) {
	for _, tc := range []struct {
		words *lastWords
		want  Cause
	}{
		{errorWords(errors.New("no labels")), CauseError},
		{errorWords(fmt.Errorf("rank 1: %w", deviceError{true})), CauseStalled},
		{errorWords(fmt.Errorf("rank 1: %w", deviceError{false})), CauseError},
		{panicWords("an index", nil), CauseProgram},
		{errorWords(fmt.Errorf("step 3: %w", collective.ErrAborted)), CauseLost},
		{errorWords(fmt.Errorf("step 3: %w", &cluster.Lost{Err: errors.New("a graph server has not answered")})), CauseLost},
		{panicWords(fmt.Errorf("step 3: %w", collective.ErrAborted), nil), CauseLost},
	} {
		if got := tc.words.cause(); got != tc.want {
			t.Errorf("%s: cause %d, want %d", tc.words.Error, got, tc.want)
		}
	}
}

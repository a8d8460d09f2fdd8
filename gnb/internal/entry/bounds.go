package entry

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Check returns an error for an option that is not between low and high, both included. If low is
// above 0, the option may also be 0, which means its default.
func Check(name string, value, low, high int) error {
	if value == 0 || value >= low && value <= high {
		return nil
	}
	text := fmt.Sprintf("gnb: %s is %d", name, value)
	if value < 0 {
		text += " and cannot be negative"
	}
	text += fmt.Sprintf("; it is %d to %d", low, high)
	if low > 0 {
		text += ", or 0 for the default"
	}
	return errors.New(text)
}

// MaxHidden is the maximum number of columns of a hidden layer: dropout has random draws for this
// number of columns.
const MaxHidden = 1 << 19

// MaxCount is the maximum number of nodes, seeds and steps.
const MaxCount = math.MaxInt32

// MaxWorkers returns the maximum number of workers of a run on this machine.
func MaxWorkers() int { return min(collective.MaxRanks, max(64, 8*runtime.NumCPU())) }

// Workers returns the value of the environment variable GNB_WORKERS, 0 if it is not set.
func Workers() (int, error) {
	text := envknob.Workers.Get()
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxWorkers() {
		return 0, fmt.Errorf("gnb: the environment variable GNB_WORKERS is %q; it is the number of workers of runs that do not say theirs, 1 to %d", text, MaxWorkers())
	}
	return n, nil
}

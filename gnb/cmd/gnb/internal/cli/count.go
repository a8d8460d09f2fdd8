package cli

import (
	"flag"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/machine"
)

// MaxCount is the maximum of repetitions and counts.
const MaxCount = math.MaxInt32

// CountFlag returns an error if a flag is not from low to high.
func CountFlag(name string, value, low, high int) error {
	if value < low || value > high {
		return Usagef("--%s is %d; it must lie in [%d, %d]", name, value, low, high)
	}
	return nil
}

// CountFlags returns an error for the first integer flag below 1.
func CountFlags(fs *flag.FlagSet, names ...string) error {
	for _, name := range names {
		if n, ok := fs.Lookup(name).Value.(flag.Getter).Get().(int); ok {
			if err := CountFlag(name, n, 1, MaxCount); err != nil {
				return err
			}
		}
	}
	return nil
}

// negative are the whole numbers for which a negative one means something.
var negative = []string{"checkpoint-every"}

// whole returns the value of a flag that is a whole number.
func whole(f *flag.Flag) (n int64, ok bool) {
	value, ok := f.Value.(flag.Getter)
	if !ok {
		return 0, false
	}
	switch x := value.Get().(type) {
	case int:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}

// inRange returns an error for the first whole-number flag that was set to a number that means nothing in any command.
func inRange(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		n, ok := whole(f)
		if err != nil || !ok {
			return
		}
		switch most := int64(machine.MaxThreads()); {
		case n < 0 && !slices.Contains(negative, f.Name):
			err = Usagef("--%s is %d, and cannot be negative", f.Name, n)
		case f.Name == "threads" && n > most:
			err = Usagef("--threads is %d; this machine runs at most %d", n, most)
		}
	})
	return err
}

// SetFrom1To returns an error for the first of the flags in most that was set and is not from 1 to its number there. 0 in the
// options means the default, and is what a flag has that was not set.
func SetFrom1To(fs *flag.FlagSet, most map[string]int64) (err error) {
	fs.Visit(func(f *flag.Flag) {
		high, ok := most[f.Name]
		if err != nil || !ok {
			return
		}
		n, _ := whole(f)
		switch {
		case n == 0:
			err = Usagef("--%s is 0; it must be at least 1", f.Name)
		case n < 1 || n > high:
			err = Usagef("--%s is %d; it must lie in [1, %d]", f.Name, n, high)
		}
	})
	return err
}

// NotZero returns an error for a flag that was set to 0 but must not be 0, because 0 in the
// options means the default.
func NotZero(fs *flag.FlagSet, names ...string) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if err == nil && slices.Contains(names, f.Name) && f.Value.String() == "0" {
			err = Usagef("--%s is 0; it must be at least 1", f.Name)
		}
	})
	return err
}

package cli

import (
	"flag"
	"math"
	"slices"
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

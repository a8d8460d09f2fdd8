package collective

import (
	"fmt"
	"math"
)

// checkSizes refuses sizes that are negative or whose bytes overflow.
func checkSizes(what string, s Site, dims ...int) error {
	elems := 1
	for _, d := range dims {
		if d < 0 {
			return fmt.Errorf("collective: %s at %v: size %d is negative", what, s, d)
		}
		if d > 0 && elems > math.MaxInt/16/d {
			return fmt.Errorf("collective: %s at %v: sizes %v are too large to address", what, s, dims)
		}
		elems *= max(d, 1)
	}
	return nil
}

func checkReducer(s Site, n, virtual int) error {
	if virtual < 1 {
		return fmt.Errorf("collective: a reducer at %v: %d virtual slots a rank; there must be at least one", s, virtual)
	}
	return checkSizes("a reducer", s, n, virtual)
}

func checkRoot(s Site, root, world int) error {
	if root < 0 || root >= world {
		return fmt.Errorf("collective: a broadcast at %v: root %d is not a rank of a run of %d", s, root, world)
	}
	return nil
}

func releasedError(what string, s Site) error {
	return fmt.Errorf("collective: %s at %v: its memory was released", what, s)
}

func checkRows(s Site, lo, hi, rows int) error {
	if lo < 0 || lo > hi || hi > rows {
		return fmt.Errorf("collective: publishing a matrix at %v: rows %d to %d are not a range of its %d rows", s, lo, hi, rows)
	}
	return nil
}

func checkSend(s Site, send [][]byte, world int) error {
	if len(send) != world {
		return fmt.Errorf("collective: an all-to-all at %v: %d messages for a run of %d ranks; there must be one for each rank", s, len(send), world)
	}
	return nil
}

func checkSplit(s Site, isSplit, hasSplit bool) error {
	switch {
	case isSplit:
		return fmt.Errorf("collective: a split at %v: this communicator came from Split and cannot be split again", s)
	case hasSplit:
		return fmt.Errorf("collective: a split at %v: this communicator has been split already; it can be split once", s)
	}
	return nil
}

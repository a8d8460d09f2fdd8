package runfile

import (
	"math"
	"strconv"
)

// Number is a float64 that JSON encodes as null if it is not finite.
type Number float64

// MarshalJSON writes the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if x := float64(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return strconv.AppendFloat(nil, x, 'g', -1, 64), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a number; null is NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	x, err := strconv.ParseFloat(string(b), 64)
	*n = Number(x)
	return err
}

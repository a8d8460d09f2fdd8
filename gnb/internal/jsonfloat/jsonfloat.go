// Package jsonfloat writes floats to JSON that may be NaN or infinite, for which JSON has no words.
package jsonfloat

import (
	"math"
	"strconv"
)

// Float is a float64 that is null in JSON where it is not finite. null is read as NaN.
type Float float64

// MarshalJSON writes the shortest decimal that reads back as x, or null.
func (x Float) MarshalJSON() ([]byte, error) {
	if f := float64(x); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (x *Float) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*x = Float(math.NaN())
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	*x = Float(f)
	return err
}

package entry

import (
	"fmt"
	"math"
)

// None sets an option to zero if the option's zero value means a default.
const None = -1

// Int is an integer option from Low to High. If Low is above 0 it may also be 0, which means its
// default.
type Int struct {
	Name      string
	Value     int
	Low, High int
}

// Whole makes an Int.
func Whole(name string, value, low, high int) Int { return Int{name, value, low, high} }

// CheckAll returns an error for the first option that is out of bounds.
func CheckAll(of ...Int) error {
	for _, b := range of {
		if err := Check(b.Name, b.Value, b.Low, b.High); err != nil {
			return err
		}
	}
	return nil
}

// Number is a floating-point option.
type Number struct {
	name      string
	value     float64
	low, high float64 // high is excluded if it is infinite, or if open is set
	open      bool
	none      bool // takes None
	what      string
}

// CheckNumbers returns an error for the first option that is NaN or out of bounds.
func CheckNumbers(of ...Number) error {
	for _, b := range of {
		none := ""
		if b.none {
			none = ", or gnb.None"
		}
		switch v := b.value; {
		case math.IsNaN(v):
			return fmt.Errorf("gnb: %s is NaN, which is not a number; it is %s", b.name, b.what)
		case b.none && v == None:
		case v < b.low || v > b.high || math.IsInf(v, 0) || b.open && v == b.high:
			return fmt.Errorf("gnb: %s is %v; it is %s%s", b.name, v, b.what, none)
		}
	}
	return nil
}

// Rate returns an option that is at least 0; none tells whether it accepts None.
func Rate(name string, v float64, none bool) Number {
	return Number{name: name, value: v, high: math.MaxFloat32, none: none, what: "a number from 0 up"}
}

// Share returns an option that is a dropout probability; none tells whether it accepts None.
func Share(name string, v float64, none bool) Number {
	return Number{name: name, value: v, high: 1, open: true, none: none, what: "the share to drop, from 0 to below 1"}
}

package bounds

import (
	"fmt"
	"math"
)

// None says zero to an option whose zero means a default.
const None = -1

// Int is an option that is a whole number from Low to High; where Low is above 0, it may be 0 too, which means
// its default.
type Int struct {
	Name      string
	Value     int
	Low, High int
}

// Whole makes an Int.
func Whole(name string, value, low, high int) Int { return Int{name, value, low, high} }

// CheckAll is the error of the first option that is out of its bounds.
func CheckAll(of ...Int) error {
	for _, b := range of {
		if err := Check(b.Name, b.Value, b.Low, b.High); err != nil {
			return err
		}
	}
	return nil
}

// Number is an option that is a number.
type Number struct {
	name      string
	value     float64
	low, high float64 // high is not reached where it is an infinity, or open
	open      bool
	none      bool // takes None
	what      string
}

// CheckNumbers is the error of the first option that is no number, or out of its bounds.
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

// Rate is an option that is a number from 0 up; none says that it takes None.
func Rate(name string, v float64, none bool) Number {
	return Number{name: name, value: v, high: math.MaxFloat32, none: none, what: "a number from 0 up"}
}

// Share is an option that is the share to drop; none says that it takes None.
func Share(name string, v float64, none bool) Number {
	return Number{name: name, value: v, high: 1, open: true, none: none, what: "the share to drop, from 0 to below 1"}
}

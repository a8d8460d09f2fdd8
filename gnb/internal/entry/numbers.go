package entry

import (
	"fmt"
	"math"
)

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
	what      string
}

// CheckNumbers returns an error for the first option that is NaN or out of bounds.
func CheckNumbers(of ...Number) error {
	for _, b := range of {
		switch v := b.value; {
		case math.IsNaN(v):
			return fmt.Errorf("gnb: %s is NaN, which is not a number; it is %s", b.name, b.what)
		case v < b.low || v > b.high || math.IsInf(v, 0) || b.open && v == b.high:
			return fmt.Errorf("gnb: %s is %v; it is %s", b.name, v, b.what)
		}
	}
	return nil
}

// Rate returns an option that is at least 0.
func Rate(name string, v float64) Number {
	return Number{name: name, value: v, high: math.MaxFloat32, what: "a number from 0 up"}
}

// Share returns an option that is a probability below 1.
func Share(name string, v float64) Number {
	return Number{name: name, value: v, high: 1, open: true, what: "a share from 0 to below 1"}
}

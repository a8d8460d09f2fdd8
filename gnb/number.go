package gnb

import (
	"reflect"
	"time"
)

// numberOf returns the number that a logged value stands for; ok is false if it stands for none.
func numberOf(v any) (x float64, ok bool) {
	switch x := v.(type) {
	case interface{ Mean() float64 }: // a step's loss
		return x.Mean(), true
	case time.Duration:
		return x.Seconds(), true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	switch x := reflect.ValueOf(v); {
	case x.CanFloat():
		return x.Float(), true
	case x.CanInt():
		return float64(x.Int()), true
	case x.CanUint():
		return float64(x.Uint()), true
	}
	return 0, false
}

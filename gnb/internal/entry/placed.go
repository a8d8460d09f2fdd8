package entry

import "fmt"

// Placed is a panic's value with the source line of the program that caused it.
type Placed struct {
	Value any
	At    string
}

func (p Placed) Error() string {
	if p.At == "" {
		return fmt.Sprint(p.Value)
	}
	return fmt.Sprintf("%v, at %s", p.Value, p.At)
}

// Unwrap returns the value if it is an error.
func (p Placed) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

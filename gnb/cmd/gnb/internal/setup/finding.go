package setup

import "fmt"

// check is one finding of the doctor. The doctor itself fills in its name.
type check struct {
	Name   string `json:"name"`   // such as "kernel"
	OK     bool   `json:"ok"`     // false: something is wrong
	Detail string `json:"detail"` // what was found
	Fix    string `json:"fix"`    // what to do, if it is not OK
}

// String returns the finding as one or more lines.
func (c check) String() string {
	mark := "ok  "
	if !c.OK {
		mark = "FAIL"
	}
	s := fmt.Sprintf("%s  %-13s  %s\n", mark, c.Name, c.Detail)
	if c.Fix != "" {
		s += fmt.Sprintf("      %-13s  to fix: %s\n", "", c.Fix)
	}
	return s
}

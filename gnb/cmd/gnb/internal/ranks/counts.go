package ranks

import (
	"errors"
	"strconv"
	"strings"
)

// Counts is a flag of integers, "1,2,4".
type Counts []int

// String returns the flag's text.
func (c *Counts) String() string {
	words := make([]string, len(*c))
	for i, n := range *c {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// Set reads the flag's text.
func (c *Counts) Set(s string) error {
	*c = nil
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return errors.New("it is a list of whole numbers of 1 or more, separated by commas")
		}
		*c = append(*c, n)
	}
	return nil
}

package scaling

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// JupyterLab wraps long lines anywhere, even within numbers. With a width of 1,280 pixels and an
// open sidebar it does so after about 100 characters.
func TestScalingTableIsNarrow(t *testing.T) {
	c := Curve{Model: "sage", Dataset: "papers100M", Device: "cpu", Cores: 128, Threads: 2, Repeats: 5, Steps: 20}
	for _, n := range []int{1, 64} {
		c.Points = append(c.Points, Point{
			Workers: n, Cores: 2 * n, Batch: 1 << 20, Rate: 12_345_678, Speedup: 61.84, Low: 58.21, High: 63.96, Ideal: float64(n), Efficiency: 0.97,
			Seconds: 1.23456, RepeatedEdges: 1.31, RepeatedRows: 12.76,
		})
	}
	table := strings.Split(c.String(), "\n")[2:5]
	for _, line := range table {
		if n := utf8.RuneCountInString(line); n > 90 {
			t.Errorf("a line of the table has %d characters, want at most 90:\n%s", n, line)
		}
	}
	for _, want := range []string{"12345678", "61.84", "58.21", "63.96", "64.00", "1235", "1.31", "12.76"} {
		if !strings.Contains(table[2], want) {
			t.Errorf("%q is missing in %q", want, table[2])
		}
	}
}

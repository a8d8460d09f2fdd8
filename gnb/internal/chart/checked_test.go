package chart

import (
	"strings"
	"testing"
)

// Charts of a file are shown only if this package may have written them.
func TestChecked(t *testing.T) {
	for _, areas := range [][]Area{nil, {
		{Title: "a 'b'", Lines: []Line{{Name: "x", Color: Blue, Points: []XY{{1, 2}, {2, nan}}}}, Marks: []Mark{{Text: "m", Color: Green, At: nil}}},
		{Title: "g", Grid: &Grid{Rows: []string{"r"}, Columns: []string{"a", "b"}, Values: [][]float64{{1, nan}}}},
		{Title: "t", Grid: &Grid{Rows: []string{"r"}, Columns: []string{"a"}, Values: [][]float64{{1}}, Texts: [][]string{{"<b>"}}}},
	}} {
		if s := AreasJSON("tail", 880, 200, false, areas); Checked(s) != s {
			t.Errorf("charts of this package are refused: %s", s)
		}
	}
	good := AreasJSON("", 880, 200, true, []Area{{Title: "a", Lines: []Line{{Name: "x", Color: Blue, Points: []XY{{1, 2}}}}}})
	for what, s := range map[string]string{
		"no charts":     "",
		"no JSON":       `'><script>alert(1)</script>`,
		"two values":    good + good,
		"more brackets": good + "]}",
		"colour":        strings.Replace(good, hex(Blue), "red;background:url(//evil.example)", 1),
		"text as size":  strings.Replace(good, `"size":[880,200]`, `"size":["880","200"]`, 1),
		"unknown field": strings.Replace(good, `"page"`, `"onload":"alert(1)","page"`, 1),
		"odd points":    strings.Replace(good, `"points":[1,2]`, `"points":[1,2,3]`, 1),
	} {
		if got := Checked(s); got != "" {
			t.Errorf("%s: kept %s", what, got)
		}
	}
}

var nan = func() float64 { var z float64; return z / z }()

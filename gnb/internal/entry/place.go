package entry

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// placeOf returns the name of a source line for errors: "file.go:12" or, in a notebook, "line 12
// `text of the line`". GoNB compiles all cells into one file, whose name means nothing to the
// user. The name must also not be printed: an error line that contains "main.go:12" after two
// colons crashes GoNB v0.11.4, which parses the text between the colons as a column.
func placeOf(f runtime.Frame) string {
	if !cellFile.MatchString(f.File) {
		return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
	}
	text := "of the cells"
	if s := sourceLine(f.File, f.Line); s != "" {
		text = "`" + s + "`"
	}
	return fmt.Sprintf("line %d %s", f.Line, text)
}

// cellFile matches GoNB's file of all cells, and its file for cells with tests.
var cellFile = regexp.MustCompile(`[/\\]gonb_[0-9a-f]+[/\\]main(_test)?\.go$`)

// sourceLine returns a line of a file, shortened for a message; "" if it cannot be read.
func sourceLine(file string, line int) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if n < line {
			continue
		}
		r := []rune(strings.TrimSpace(lines.Text()))
		const most = 70
		if len(r) > most {
			r = append(r[:most-1], '…')
		}
		return string(r)
	}
	return ""
}

// cellPlace finds the places in cells within an error.
var cellPlace = regexp.MustCompile("\\bline (\\d+) (`|of the cells)")

// CellLines returns lines to print before an error on a cell's standard error, one for each source
// line that the error names: the path of the cells' file with the line number, before which GoNB
// prints cell and line.
func CellLines(text, cells string) string {
	if cells == "" {
		return ""
	}
	var seen []string
	for _, m := range cellPlace.FindAllStringSubmatch(text, 4) {
		if line := "\n  " + cells + ":" + m[1]; !slices.Contains(seen, line) {
			seen = append(seen, line)
		}
	}
	return strings.Join(seen, "")
}

// MainFile returns the file of main.main if the caller runs under it, else "".
func MainFile() string {
	for f := range callers() {
		if f.Function == "main.main" {
			return f.File
		}
	}
	return ""
}

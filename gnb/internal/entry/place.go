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

// placeOf is how errors name a place of the program: "file.go:12", or, in a notebook,
// "line 12 `what stands there`". The file there is one that GoNB makes of all cells, so
// its name says nothing, and must not be said: an error's line with "main.go:12" in it
// ends GoNB v0.11.4 where two colons stand before (it takes what is between them for
// a column).
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

// cellFile is what GoNB calls the file of all cells, and of those with tests.
var cellFile = regexp.MustCompile(`[/\\]gonb_[0-9a-f]+[/\\]main(_test)?\.go$`)

// sourceLine is a line of a file, shortened to what a message has room for; "" where it
// cannot be read.
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

// CellLines are lines to follow an error on a cell's standard error, one for each place
// in it: the path of the cells' file with the line, which GoNB puts cell and line
// before.
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

// MainFile is the file of main.main, in which the caller runs, "" if in none.
func MainFile() string {
	for f := range callers() {
		if f.Function == "main.main" {
			return f.File
		}
	}
	return ""
}

package repotest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of seven tasks in docs/from-pyg-or-dgl.md has the lines of notebooks/week.ipynb and of bench/week, and no task
// takes more lines than it may.
func TestWeekTable(t *testing.T) {
	var nb struct {
		Cells []struct {
			Type   string `json:"cell_type"`
			Source []string
		}
	}
	if err := json.Unmarshal([]byte(read(t, "notebooks", "week.ipynb")), &nb); err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`^## (\d)\. (.*)`)
	names, ours, task := make([]string, 8), make([]int, 8), 0
	for _, c := range nb.Cells {
		source := strings.Join(c.Source, "")
		if c.Type == "markdown" {
			if m := heading.FindStringSubmatch(source); m != nil {
				task = int(m[1][0] - '0')
				names[task] = m[2]
			}
			continue
		}
		ours[task] += goLines(source)
	}
	most := []int{0, 45, 12, 12, 20, 12, 45, 45}
	var b strings.Builder
	b.WriteString("| task | GraphNB | Python |\n|---|---:|---:|\n")
	for i := 1; i < len(names); i++ {
		path := filepath.Join(root, "bench", "week", fmt.Sprintf("task%d.py", i))
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		theirs := pythonLines(string(raw))
		if ours[i] == 0 || ours[i] > most[i] || theirs == 0 {
			t.Errorf("task %d has %d lines of Go and %d of Python; at most %d of Go are allowed", i, ours[i], theirs, most[i])
		}
		fmt.Fprintf(&b, "| %d. %s | %d | [%d](../bench/week/task%d.py) |\n", i, names[i], ours[i], theirs, i)
	}
	compare(t, "from-pyg-or-dgl.md", "week", b.String())
}

// goLines counts the lines of a cell that are neither blank nor nothing but a comment.
func goLines(source string) (n int) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// pythonLines counts the lines of a program that are neither blank nor nothing but a comment, without the first line,
// which says what it does.
func pythonLines(source string) (n int) {
	for i, line := range strings.Split(source, "\n") {
		if line = strings.TrimSpace(line); i > 0 && line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

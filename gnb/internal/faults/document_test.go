//go:build linux

package faults

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// page is the path of docs/faults.md, from this package's directory.
const page = "../../../docs/faults.md"

// document compares the runs' outputs with the page's section for this way of starting ranks. With
// the flag -update, it writes the section if all cases have run.
func (r Ranks) document(t *testing.T, printed map[Case]string) {
	t.Helper()
	if t.Failed() || len(printed) == 0 {
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- faults: %s -->\n", r.Name), "<!-- end of faults -->"
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no section %q", page, begin)
	}
	if *update && os.Getenv("GNB_SOAK") != "" {
		if err := atomicfile.WriteFile(page, []byte(before+begin+r.table(printed)+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if r.Ended && os.Getenv("GNB_SOAK") == "" {
		return // the launcher determines which of several messages comes first
	}
	for c, text := range printed {
		if m, _ := r.message(c, text); !strings.Contains(old, "| "+m+" |") {
			t.Errorf("%s lacks the output of %v: %s; GNB_SOAK=1 go test ./gnb/internal/faults -update writes the page", page, c, m)
		}
	}
}

// table returns the page's table: one row for each fault, process and message. Processes that print
// the same at the same places share rows.
func (r Ranks) table(printed map[Case]string) string {
	var b strings.Builder
	b.WriteString("\n| fault | process | what the run prints | PLACE, if the fault comes at |\n|---|---|---|---|\n")
	for _, f := range faults {
		var of []string // processes that share the rows in rows
		var rows [][][2]string
		for _, v := range victims {
			var now [][2]string // message and places
			for _, s := range stages {
				c := Case{f, s, v}
				text, ok := printed[c]
				if !ok {
					continue
				}
				m, at := r.message(c, text)
				if at != "" {
					at = s + ": " + at
				}
				i := slices.IndexFunc(now, func(row [2]string) bool { return row[0] == m })
				switch {
				case i < 0:
					now = append(now, [2]string{m, at})
				case at != "":
					now[i][1] += "<br>" + at
				}
			}
			if n := len(rows); n > 0 && slices.Equal(rows[n-1], now) {
				of[n-1] += ", " + v
			} else if len(now) > 0 {
				of, rows = append(of, v), append(rows, now)
			}
		}
		for i, now := range rows {
			for _, row := range now {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f, of[i], row[0], cmp.Or(row[1], "any stage"))
			}
		}
	}
	return b.String() + "\n"
}

// Parts of a message that differ from run to run.
var (
	place    = regexp.MustCompile(` (?:failed|vanished|is silent) at (.*?stage [\w-]+): `)
	host     = regexp.MustCompile(`(rank \d) \([^ ()]+\)`)
	pid      = regexp.MustCompile(`\(pid \d+( on \S+)?\)`)
	seconds  = regexp.MustCompile(`\d+\.\d s ago`)
	tenths   = regexp.MustCompile(`\b(\d+)\.\d s([,;])`)
	age      = regexp.MustCompile(`no heartbeat for \d+\.\d s`) // 5.0 s and, on a busy machine, more
	source   = regexp.MustCompile(`\bat \S*\w\.go:\d+`)
	saving   = regexp.MustCompile(`(saving step |step-0+)\d+`)
	block    = regexp.MustCompile(`\(\d+ in use\)`)
	instance = regexp.MustCompile(`node \d+`)
	trace    = regexp.MustCompile(`^.*\.go:\d+ \+0x.*?(cluster|multigpu): `) // of another rank, in a line that mpirun has joined
	memory   = regexp.MustCompile(`(?m)^.*(out of memory|cannot allocate memory).*$`)
)

// message returns the part of a run's output that is the same in every run, and the place that it
// names.
func (r Ranks) message(c Case, text string) (message, at string) {
	continues, _ := r.want(c)
	switch {
	case r.Ended && c.Victim == Launcher && c.Fault == Kill:
		return "nothing: `mpirun` is gone; each rank notices that, and the run is interrupted after a checkpoint, with the reason in its record (`gnb runs show`)", ""
	case r.Ended && c.Victim == Launcher && c.Fault == Panic:
		return "nothing: `mpirun`, whose panic is SIGABRT, kills the ranks; the run's state is `killed`", ""
	case continues:
		return "nothing: the run continues to the same weights", ""
	case c.Victim == Launcher && c.Fault == Kill:
		return "nothing: the process is gone, and its workers with it; the run's state is `killed`", ""
	case c.Victim == Launcher && c.Fault == Memory:
		if m := memory.FindString(text); m != "" {
			text = m
		}
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = trace.ReplaceAllString(l, "$1: ")
	}
	placed := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !place.MatchString(l) })
	// The messages of rank 0 come first.
	slices.SortStableFunc(placed, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	text = lines[0]
	if len(placed) > 0 {
		text = placed[0]
		at = place.FindStringSubmatch(text)[1]
	}
	message = r.general(text)
	if c.Fault == Cut && len(placed) > 1 {
		message += "<br>and the other host: " + r.general(placed[1])
	}
	return message, at
}

// order sorts the lines of rank 0 before the lines of rank 1 about rank 0.
func order(line string) int {
	if strings.HasPrefix(line, "cluster:") {
		return 1
	}
	return 0
}

// general returns a line without the parts that differ from run to run.
func (r Ranks) general(text string) string {
	if m := place.FindStringSubmatch(text); m != nil {
		text = strings.Replace(text, " at "+m[1]+": ", " at PLACE: ", 1)
	}
	text = pid.ReplaceAllString(text, "(pid 4242)")
	text = host.ReplaceAllString(text, "$1 (node7)")
	text = seconds.ReplaceAllString(text, "2.1 s ago")
	text = age.ReplaceAllString(text, "no heartbeat for 5.0 s")
	text = tenths.ReplaceAllString(text, "$1.0 s$2")
	text = source.ReplaceAllString(text, "at main.go:17")
	text = block.ReplaceAllString(text, "(7700480 in use)")
	text = instance.ReplaceAllString(text, "node 270")
	for _, word := range strings.Fields(text) {
		if word = strings.Trim(word, ":;,()"); filepath.IsAbs(word) {
			text = strings.ReplaceAll(text, word, filepath.Join("runs", "RUN", strings.TrimPrefix(filepath.Base(filepath.Dir(word)), "faulty"), filepath.Base(word)))
		}
	}
	text = saving.ReplaceAllString(text, "${1}6")
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}

// A message of one rank behind another one's trace, on one line, is that message.
func TestJoinedLine(t *testing.T) {
	r, c := Ranks{Ended: true}, Case{Fault: Memory, Victim: Rank0}
	const message = "cluster: rank 1 (a) ends, because rank 0 (a) vanished at epoch 0, step 9, stage evaluate: the connection to its process has ended"
	want, at := r.message(c, "fatal error: runtime: out of memory\n"+message)
	got, place := r.message(c, "fatal error: runtime: out of memory\n\t/x/cluster/session.go:262 +0x17 fp=0x134dbc5ebfe0 "+message)
	if got != want || place != at || !strings.HasPrefix(got, "`cluster: rank 1") {
		t.Errorf("%q at %q, want %q at %q", got, place, want, at)
	}
}

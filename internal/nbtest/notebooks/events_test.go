package notebooks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of events runs in a real kernel, on the changes of etcd if GNB_DATA has them and else on the history of the clone
// above it: the model is better than EdgeBank, each step is proved, and the files that it names for next month are counted.
func TestEventsNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	clone := t.TempDir()
	madeHistory(t, clone)
	dir := filepath.Join(clone, "notebooks")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := env.Run(t, "../../../notebooks/events.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	numbers := func(pattern string) (x []float64) {
		m := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("the cells did not write %q:\n%s", pattern, out)
		}
		for _, text := range m[1:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			x = append(x, v)
		}
		return x
	}
	if x := numbers(`counts: MRR ([0-9.]+), EdgeBank ([0-9.]+)`); x[0] < 1.5*x[1] || x[0] > 1 {
		t.Errorf("the MRR is %v, and %v by EdgeBank", x[0], x[1])
	}
	if x := numbers(`proved: ([0-9]+) steps, ([0-9]+) questions`); x[0] < 20 || x[1] < 100*x[0] || x[1] > 200*x[0] {
		t.Errorf("%v steps and %v questions were proved", x[0], x[1])
	}
	if x := numbers(`([0-9]+) of the 30 likeliest files did change; of the 30 that changed most before, ([0-9]+)`); x[0] > 30 || x[0]+3 < x[1] {
		t.Errorf("%v of the model's files did change, and %v of those that changed before", x[0], x[1])
	}
	lookAt(t, "events-notebook", figures(t, r.Executed, 3)) // of the data, the run and the report
}

// madeHistory makes a git repository with the changes of six authors of two years, each with files of her own that she changes again and
// again, and few others.
func madeHistory(t *testing.T, dir string) {
	t.Helper()
	run := func(env []string, args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, b)
		}
	}
	run(nil, "init", "-q")
	for i := range 700 {
		author := i * 7 % 6
		for k := range 3 {
			file := fmt.Sprintf("part%d/file%d.go", author, (i/6+k*k)%9)
			if i%11 == 0 && k == 2 {
				file = fmt.Sprintf("shared/file%d.go", i%40)
			}
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strconv.Itoa(i)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 25 * time.Hour).Format(time.RFC3339)
		who := []string{"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at, fmt.Sprintf("GIT_AUTHOR_EMAIL=a%d@example.com", author), fmt.Sprintf("GIT_AUTHOR_NAME=a%d", author)}
		run(who, "add", "-A")
		run(who, "commit", "-q", "-m", "change")
	}
}

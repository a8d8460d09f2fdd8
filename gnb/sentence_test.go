package gnb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu"
)

// failing is a program that fails with a text of several lines, in the way that its argument names.
var failing = gnb.Program("test.failing", func(w *gnb.Worker, how string) error {
	if w.Rank() != w.World()-1 {
		w.Barrier()
		return nil
	}
	text := "first line\n  second line\r\n"
	switch how {
	case "panic":
		panic(text)
	case "fail":
		w.Fail(errors.New(text))
	case "return":
		return errors.Join(errors.New("first line"), errors.New("second line"))
	case "wrapped":
		return fmt.Errorf("reading:\n%w", errors.New("first line\nsecond line"))
	case "output":
		fmt.Fprintln(os.Stderr, "much\noutput")
		return errors.New("first line\nsecond line")
	}
	return nil
})

var waysToFail = []string{"panic", "fail", "return", "wrapped", "output"}

// The error of a run is one line, whatever the worker said.
func TestErrorsAreOneLine(t *testing.T) {
	for _, how := range waysToFail {
		for _, workers := range []int{1, 2} {
			r, err := gnb.Launch(t.Context(), failing, how, gnb.LaunchOptions{Workers: workers, Device: "cpu", Quiet: true, RunDir: t.TempDir()})
			failed, ok := errors.AsType[*multigpu.WorkerError](err)
			if !ok || failed.Rank != workers-1 || strings.ContainsAny(err.Error(), "\n\r") || !strings.Contains(err.Error(), "first line; second line") {
				t.Errorf("%s, %d workers: %q", how, workers, err)
			}
			if again, e := runs.Open(r.Dir); e != nil || strings.Contains(again.Result.Error, "\n") {
				t.Errorf("%s: the result has %q, %v", how, again.Result.Error, e)
			}
		}
	}
}

// A program whose output is a pipe ends with the sentence, alone on the last line.
func TestErrorIsTheLastLine(t *testing.T) {
	testneed.NotShort(t, "it starts programs")
	if how := os.Getenv("GNB_TEST_FAILING"); how != "" {
		_, err := gnb.Launch(context.Background(), failing, how, gnb.LaunchOptions{Workers: 2, Device: "cpu", RunDir: os.Getenv("GNB_TEST_FAILING_DIR")})
		gnb.Check(err)
		return
	}
	for _, how := range waysToFail {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestErrorIsTheLastLine$")
		cmd.Env = append(os.Environ(), "GNB_TEST_FAILING="+how, "GNB_TEST_FAILING_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("%s: the program did not fail:\n%s", how, out)
		}
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "multigpu: rank 1") || !strings.Contains(last, "first line; second line") {
			t.Errorf("%s: the last line is %q of\n%s", how, last, out)
		}
	}
}

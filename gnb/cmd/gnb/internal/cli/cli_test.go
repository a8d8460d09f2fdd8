package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/multigpu"
)

// runFor runs a command that consists of run and returns its exit status and output.
func runFor(t *testing.T, run func(context.Context, []string, *Output) error, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	status = Run(t.Context(), Command{Name: "probe", Run: run}, args, &o, &e)
	return status, o.String(), e.String()
}

func TestParseTakesFlagsAnywhere(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		n     int
		rest  []string
		usage bool
	}{
		{[]string{"a", "--n", "3", "b"}, 3, []string{"a", "b"}, false},
		{[]string{"-n=3", "a", "b"}, 3, []string{"a", "b"}, false},
		{[]string{"a", "b", "--n", "4"}, 4, []string{"a", "b"}, false},
		{[]string{"a", "--", "--n"}, 0, []string{"a", "--n"}, false},
		{[]string{"a"}, 0, nil, true},
		{[]string{"a", "b", "c"}, 0, nil, true},
		{[]string{"a", "b", "--m"}, 0, nil, true},
		{[]string{"a", "b", "--n", "x"}, 0, nil, true},
	} {
		var n int
		var rest []string
		status, _, stderr := runFor(t, func(_ context.Context, args []string, out *Output) error {
			fs := out.Flags("A B", "Probe.")
			fs.IntVar(&n, "n", 0, "number")
			var err error
			rest, err = out.Parse(fs, args, 2, 2)
			return err
		}, tc.args...)
		if want := map[bool]int{false: StatusOK, true: StatusUsage}[tc.usage]; status != want {
			t.Errorf("%q: status %d, want %d: %s", tc.args, status, want, stderr)
		}
		if !tc.usage && (n != tc.n || !slices.Equal(rest, tc.rest)) {
			t.Errorf("%q: n %d, rest %q", tc.args, n, rest)
		}
	}
}

func TestJSONOutput(t *testing.T) {
	run := func(fail error) func(context.Context, []string, *Output) error {
		return func(_ context.Context, args []string, out *Output) error {
			if _, err := out.Parse(out.Flags("", "Probe."), args, 0, 0); err != nil {
				return err
			}
			out.Event("epoch", struct {
				Loss float64 `json:"loss"`
			}{0.5})
			out.Printf("for people\n")
			out.Logf("progress")
			if fail != nil {
				return fail
			}
			out.Result(map[string]int{"nodes": 34})
			return nil
		}
	}
	status, stdout, stderr := runFor(t, run(nil), "--json")
	if status != 0 || stdout != "{\"event\":\"epoch\",\"loss\":0.5}\n{\"event\":\"result\",\"nodes\":34}\n" || stderr != "progress\n" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = runFor(t, run(nil))
	if status != 0 || stdout != "for people\n" {
		t.Errorf("without --json: status %d, stdout %q", status, stdout)
	}
	status, stdout, stderr = runFor(t, run(errors.New("two\n lines")), "--json")
	if status != 1 || !strings.HasSuffix(stdout, "{\"event\":\"error\",\"error\":\"two; lines\"}\n") || !strings.HasSuffix(stderr, "gnb probe: two; lines\n") {
		t.Errorf("failing: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = runFor(t, run(nil), "--json", "--no-such-flag")
	var event struct{ Event, Error string }
	if err := json.Unmarshal([]byte(stdout), &event); status != StatusUsage || err != nil || event.Event != "error" {
		t.Errorf("wrong flag: status %d, stdout %q (%v)", status, stdout, err)
	}
}

func TestEventThatDoesNotEncodeFails(t *testing.T) {
	for _, fields := range []any{[]int{1}, map[string]any{"f": func() {}}} {
		status, _, stderr := runFor(t, func(_ context.Context, _ []string, out *Output) error {
			out.JSON = true
			out.Result(fields)
			return nil
		})
		if status != StatusFailed || !strings.Contains(stderr, "encoding the event") {
			t.Errorf("%T: status %d, %q", fields, status, stderr)
		}
	}
}

func TestHelpIsNotAFailure(t *testing.T) {
	status, _, _ := runFor(t, func(context.Context, []string, *Output) error { return flag.ErrHelp })
	if status != StatusOK {
		t.Errorf("status %d", status)
	}
}

// If a command under a launcher is interrupted before its workers start, its status tells that the
// job can be started again.
func TestInterruptedIsSaid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var o, e bytes.Buffer
	status := Run(ctx, Command{Name: "probe", Run: func(ctx context.Context, _ []string, _ *Output) error { return ctx.Err() }}, nil, &o, &e)
	want := StatusFailed
	if p, _ := multigpu.Launcher(); p != nil {
		want = multigpu.ExitResumable
	}
	if status != want || e.String() != "gnb probe: interrupted\n" {
		t.Errorf("status %d, want %d, %q", status, want, e.String())
	}
	if want == StatusFailed { // runs this test again as a rank of a launcher
		c := exec.Command(os.Args[0], "-test.run=^TestInterruptedIsSaid$", "-test.v")
		c.Env = append(os.Environ(), "GNB_LAUNCHER=torchrun", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("as a rank: %v: %s", err, out)
		}
	}
}

//go:build linux

package onhosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/setup"
	"github.com/graphnb/graphnb/multigpu"
)

// TestMain is gnb too: the launcher and the hosts' processes are this program.
func TestMain(m *testing.M) {
	othersEnd, killAfter, hostsEnd, endWithin, answerWithin = time.Second, 3*time.Second, 2*time.Second, 10*time.Second, 10*time.Second
	for _, c := range []cli.Command{Launch, Serve} {
		if len(os.Args) > 1 && os.Args[1] == c.Name {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			os.Exit(cli.Run(ctx, c, os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// fakeSSH runs the command of a host on this machine, in a folder of the test, and notes its own words. Some hosts cannot take
// part.
const fakeSSH = `#!/bin/sh
printf '%s\n' "$*" >>"$(dirname "$0")/words"
case $1 in
unreachable) echo "ssh: connect to host $1 port 22: Connection refused" >&2; exit 255 ;;
silent) exec sleep 600 ;;
old) echo 'gnb on-host {"version":"0.0.1"}'; cat >/dev/null; exit 0 ;;
other) echo "gnb on-host {\"version\":\"$VERSION\",\"build\":\"0123\"}"; cat >/dev/null; exit 0 ;;
empty) echo "sh: 1: exec: gnb: not found" >&2; exit 127 ;;
vanishes) sh -c "$2" <&0 & sleep 3; exit 255 ;; # the connection breaks once the ranks run
esac
echo "Welcome to $1"
printf %s "$LOGIN"
exec sh -c "$2"
`

// hostsOf writes fake ssh and a program of the given text for the shell, and returns the words that launch it.
func hostsOf(t *testing.T, program, hosts string) (dir string, words []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"ssh": fakeSSH, "program": "#!/bin/sh\n" + program + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"--ssh", filepath.Join(dir, "ssh"), "--hosts", hosts, "--", filepath.Join(dir, "program"), dir}
}

// run runs gnb launch in this process, and returns its status and what it printed.
func run(t *testing.T, words []string) (status int, text string) {
	t.Helper()
	var out bytes.Buffer
	status = cli.Run(t.Context(), Launch, words, &out, &out)
	return status, out.String()
}

func TestParseHosts(t *testing.T) {
	for list, want := range map[string]string{
		"a": "[{a 1}]", "a,b:4": "[{a 1} {b 4}]", " me@a.example:2 , b ": "[{me@a.example 2} {b 1}]", "[::1]:3,fe80::1": "[{::1 3} {fe80::1 1}]",
		"": "", "a,,b": "", "a:0": "", "a:x": "", "-oProxyCommand=sh": "", "me@-oProxyCommand=sh": "", "a b": "", "a:99999": "", ":2": "",
	} {
		hosts, err := parseHosts(list)
		got := ""
		if err == nil {
			got = fmt.Sprint(hosts)
		}
		if got != want {
			t.Errorf("%q: %s, %v; want %s", list, got, err, want)
		}
	}
}

// Each rank knows its place and the same secret, which no command line has, and its output has its host's name.
func TestRanksOfHosts(t *testing.T) {
	dir, words := hostsOf(t, `echo "$RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, $GNB_TOKEN, $MASTER_ADDR $MASTER_PORT $GNB_LAUNCHER $# in $PWD"`, "a:2,b")
	t.Setenv("GNB_TOKEN", "another secret, of the launcher's own")
	t.Setenv("GNB_TOKEN_FILE", "/nowhere")
	status, text := run(t, words)
	if status != 0 {
		t.Fatalf("status %d:\n%s", status, text)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var places, common []string
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ", ", 3)
		if len(f) < 3 {
			if !strings.Contains(line, "Welcome to ") {
				t.Errorf("the launcher printed %q", line)
			}
			continue
		}
		places, common = append(places, f[0]+", "+f[1]), append(common, f[2])
	}
	slices.Sort(places)
	if want := []string{"a: 0 of 3, 0 of 2", "a: 1 of 3, 1 of 2", "b: 2 of 3, 0 of 1"}; !slices.Equal(places, want) {
		t.Errorf("the ranks are %q, want %q", places, want)
	}
	slices.Sort(common)
	if common = slices.Compact(common); len(common) != 1 || !strings.HasSuffix(common[0], "torchrun 1 in "+here) {
		t.Fatalf("the ranks have %q", common)
	}
	token, _, _ := strings.Cut(common[0], ",")
	asked, err := os.ReadFile(filepath.Join(dir, "words"))
	if err != nil {
		t.Fatal(err)
	}
	if len(token) < 16 || strings.Contains(token, " ") || bytes.Contains(asked, []byte(token)) {
		t.Errorf("the secret is %q, and the command lines are\n%s", token, asked)
	}
}

// saves is a rank that ends with status 75 when it is asked to.
const (
	saves    = trapTERM + `echo runs; while :; do sleep 0.1; done`
	trapTERM = `trap 'echo saved; exit 75' TERM; `
)

// When a rank fails, all end, and the status says what to do.
func TestStatuses(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, program string
		status         int
		want           string // in the last line
	}{
		"done":                     {"a,b", `exit 0`, 0, ""},
		"an error of rank 0":       {"a,b", `[ $RANK = 1 ] && { ` + saves + `; }; exit 1`, 1, "status 1 (on a first)"},
		"an error of another rank": {"a,b", `[ $RANK = 0 ] && { ` + saves + `; }; exit 1`, 1, "status 1 (on b first)"},
		"another rank of its host": {"a:2,b", `[ $RANK != 1 ] && { ` + saves + `; }; exit 1`, 1, "status 1 (on a first)"},
		"a killed rank":            {"a,b", `[ $RANK = 0 ] && { ` + saves + `; }; kill -9 $$`, multigpu.ExitLost, "a host or the network failed (b first)"},
		"rank 0 knows":             {"a,b", `[ $RANK = 0 ] && exit 69; exit 1`, multigpu.ExitLost, "a host or the network failed"},
		"interrupted":              {"a,b", `exit 75`, multigpu.ExitResumable, "the same command resumes it"},
		"wrong usage":              {"a,b", `exit 2`, 2, "status 2"},
		"a rank that does not end": {"a,b", `[ $RANK = 0 ] && { trap '' TERM; while :; do sleep 0.1; done; }; exit 1`, 1, "status 1 (on b first)"},
		"a connection that breaks": {"a,vanishes", saves, multigpu.ExitLost, "(vanishes first)"},
		"no such program":          {"a,b", "", 1, "status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, words := hostsOf(t, c.program, c.hosts)
			if c.program == "" {
				if err := os.Remove(filepath.Join(dir, "program")); err != nil {
					t.Fatal(err)
				}
			}
			status, text := run(t, words)
			lines := strings.Split(strings.TrimSpace(text), "\n")
			if last := lines[len(lines)-1]; status != c.status || !strings.Contains(last, c.want) || status != 0 && !strings.HasPrefix(last, "gnb launch: ") {
				t.Errorf("status %d, want %d, and %q in the last line of\n%s", status, c.status, c.want, text)
			}
		})
	}
}

// Nothing starts unless every host answers and has this gnb; each that does not gets a sentence.
func TestHostsAreChecked(t *testing.T) {
	defer func(was time.Duration) { answerWithin = was }(answerWithin)
	answerWithin = 3 * time.Second
	t.Setenv("VERSION", setup.Release())
	dir, words := hostsOf(t, `touch "$1/started"`, "a,unreachable,silent,old,other,empty")
	status, text := run(t, words)
	for _, want := range []string{
		"unreachable: ssh cannot reach it: ssh: connect to host unreachable port 22: Connection refused\n", "silent: it has not answered for 3s\n",
		"old: it has gnb 0.0.1, and this machine has ", "other: its gnb is another build than that of a; ", "empty: it has no gnb, at ", "gnb launch: 5 hosts of 6 cannot take part, so nothing was started\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once in\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); status != 1 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("status %d, and a rank was started (%v)", status, err)
	}
	if status, text := run(t, slices.Replace(slices.Clone(words), 3, 4, "a,unreachable")); status != multigpu.ExitLost {
		t.Errorf("status %d without a host, want %d, at which a script tries again:\n%s", status, multigpu.ExitLost, text)
	}
	if status, text := run(t, []string{"--ssh", "/nowhere/ssh", "--hosts", "a,b", "--", "version"}); status != multigpu.ExitLost || !strings.Contains(text, "GNB_SSH") {
		t.Errorf("status %d without ssh:\n%s", status, text)
	}
	for _, words := range [][]string{{"--hosts", "a", "train", "--run", "x"}, {"--", "train"}, {"--hosts", "a:0", "--", "train"}, {"--hosts", "a"}, {"--hosts", "a", "--", "train"}} {
		if status, text := run(t, words); status != cli.StatusUsage {
			t.Errorf("%q: status %d\n%s", words, status, text)
		}
	}
}

// process starts gnb launch as a process of its own, and waits until its ranks run.
func process(t *testing.T, words []string, ranks int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := exec.Command(exe, append([]string{Launch.Name}, words...)...)
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, 10*time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	dir := words[len(words)-1]
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(dir, "pid-*")); len(found) == ranks {
			return c, &out
		}
		if time.Now().After(end) {
			t.Fatal("the ranks do not start")
		}
	}
}

// What login scripts print is no part of the command's output, of JSON lines for example, and does not hide the greeting.
func TestLoginScripts(t *testing.T) {
	t.Setenv("LOGIN", "last login: today") // without a line end
	_, words := hostsOf(t, `echo '{"rank":'$RANK'}'`, "a,b")
	var out, errs bytes.Buffer
	status := cli.Run(t.Context(), Launch, append(words, "--json"), &out, &errs)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	if want := []string{"b: {\"rank\":1}", "{\"rank\":0}"}; status != 0 || !slices.Equal(lines, want) || strings.Count(errs.String(), "a: last login: today\n") != 1 || strings.Contains(errs.String(), "a: \n") {
		t.Errorf("status %d, lines %q; standard error:\n%s", status, lines, &errs)
	}
}

const notesPID = `echo $$ >"$1/new-$RANK" && mv "$1/new-$RANK" "$1/pid-$RANK"; `

// Ctrl-C is for rank 0's checkpoint, and the launcher waits for it.
func TestInterrupt(t *testing.T) {
	_, words := hostsOf(t, trapTERM+notesPID+saves, "a,b:2") // a rank that has noted its pid has its trap
	c, out := process(t, words, 3)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the status says it
	if s := c.ProcessState.ExitCode(); s != multigpu.ExitResumable || strings.Count(out.String(), ": saved\n") != 3 || !strings.HasSuffix(out.String(), "gnb launch: interrupted\n") {
		t.Errorf("status %d:\n%s", s, out)
	}
}

// A shell that ends at SIGTERM while its program runs leaves nothing behind: the program is asked to end too.
func TestScriptWithoutExec(t *testing.T) {
	dir, words := hostsOf(t, `sh -c 'trap "sleep 0.5; touch $1/saved-$RANK; exit 75" TERM; touch "$1/pid-$RANK"; while [ -e "$1" ]; do sleep 0.1; done' sh "$1"; exit $?`, "a,b")
	c, out := process(t, words, 2)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the status says it
	saved, _ := filepath.Glob(filepath.Join(dir, "saved-*"))
	if s := c.ProcessState.ExitCode(); s != multigpu.ExitLost || len(saved) != 2 {
		t.Errorf("status %d, and %d of 2 programs ended in order:\n%s", s, len(saved), out)
	}
}

// However the launcher ends, its ranks do, too.
func TestKilledLauncher(t *testing.T) {
	dir, words := hostsOf(t, `trap '' TERM; `+notesPID+`while :; do sleep 0.1; done`, "a,b:2")
	c, _ := process(t, words, 3)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	for r := range 3 {
		b, err := os.ReadFile(filepath.Join(dir, "pid-"+strconv.Itoa(r)))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("rank %d (pid %d) runs a minute after the launcher was killed", r, pid)
			}
		}
	}
}

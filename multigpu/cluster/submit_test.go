package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runScript runs a batch script in a folder of its own, with the given launcher, in an environment with the given variables.
func runScript(t *testing.T, launcher, name string, env ...string) (script, output string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, proofFile), []byte("proof\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script = Batch{Nodes: 1, Launcher: launcher}.script(dir, name, "proof", nil)
	c := exec.Command("bash", "-c", script)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, outputFile))
	if err != nil {
		t.Fatal(err)
	}
	return script, string(b)
}

// A token in the environment of the submitting process does not collide with the job's own token.
func TestScriptSetsOneToken(t *testing.T) {
	_, out := runScript(t, `echo "token=${GNB_TOKEN-unset} file=$GNB_TOKEN_FILE"; true`, "gnb-train", "GNB_TOKEN=0123456789abcdef", "GNB_TOKEN_FILE=/elsewhere")
	if !strings.Contains(out, "token=unset file=/") || !strings.Contains(out, "/"+tokenFile+"\n") {
		t.Errorf("the ranks would get the variables: %s", out)
	}
}

// A program's name can neither end its line in the batch script nor add an option of sbatch.
func TestJobName(t *testing.T) {
	script, _ := runScript(t, "true", "gnb-a b\n#SBATCH --uid=0\nexit 1\r\x00é/$(exit 1)")
	if want := "#SBATCH --job-name=gnb-a_b__SBATCH_--uid_0_exit_1____" + "__exit_1_\n"; !strings.Contains(script, want) {
		t.Errorf("the script lacks the line %q:\n%s", want, script)
	}
	if got := jobName("gnb-my.Program_2"); got != "gnb-my.Program_2" {
		t.Errorf("a name without special characters became %q", got)
	}
}

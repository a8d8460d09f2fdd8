package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/envknob"
)

// Batch describes the Slurm job that a program is submitted as. The zero value submits nothing: the
// program runs on this machine.
type Batch struct {
	// Nodes is the number of machines; 0 means that the run is not submitted.
	Nodes int
	// RanksPerNode is the number of ranks on each machine, usually its number of GPUs; 0 means 1.
	RanksPerNode int
	// Options are options of sbatch: "--partition=gpu", "--gpus-per-node=4", "--cpus-per-task=8",
	// "--time=2:00:00".
	Options []string
	// Setup holds shell commands that prepare a machine, such as "module load openmpi".
	Setup string
	// Launcher is the command that starts the ranks; "" means "srun". With "mpirun" they use
	// MPI, but Slurm does not warn them of the time limit: the run then ends without a last checkpoint, and
	// the job is not requeued.
	Launcher string
}

// Check returns an error for options that no job can have.
func (b Batch) Check() error {
	switch {
	case b.Nodes < 0 || b.RanksPerNode < 0:
		return fmt.Errorf("cluster: Nodes is %d and RanksPerNode %d; neither can be negative", b.Nodes, b.RanksPerNode)
	case b.Nodes == 0 && (b.RanksPerNode > 0 || len(b.Options) > 0 || b.Setup != "" || b.Launcher != ""):
		return errors.New("cluster: a job of Slurm needs Nodes, the number of machines")
	}
	for _, o := range b.Options {
		if strings.ContainsAny(o, "\n\r\x00") || !strings.HasPrefix(o, "-") {
			return fmt.Errorf("cluster: %q is not an option of sbatch; write each like --partition=gpu", o)
		}
	}
	return nil
}

// Ranks is the number of ranks of the job.
func (b Batch) Ranks() int { return b.Nodes * max(1, b.RanksPerNode) }

// Names of files in a job's folder.
const (
	programFile = "program"
	scriptFile  = "batch.sh"
	outputFile  = "output"
	proofFile   = "shared"
	tokenFile   = "token"
	startedFile = "started"
	stopFile    = "stop"
	idFile      = "job.json"
)

// exitNotShared is the exit status of a batch script on a machine that does not see the job's
// folder: EX_CONFIG of sysexits.h.
const exitNotShared = 78

// Job is a job that was submitted to Slurm.
type Job struct {
	// ID is Slurm's number of the job.
	ID string `json:"id"`
	// Dir is the folder of its files, absolute.
	Dir string `json:"-"`
	// Submitted is when it was submitted.
	Submitted time.Time `json:"submitted"`
}

// Submit copies this program into the folder dir, which all machines must share, and submits a job
// that runs it there with args on every rank. The name is the job's in Slurm's lists, with _ in place
// of what is no letter, digit, point, underscore or hyphen.
//
// The job is requeued when its ranks exit with [ExitResumable], and up to three times with [ExitLost] or by a signal, unless [Job.Stop] has asked it to
// stop. Its output is in the file that [Job.Output] reads.
func (b Batch) Submit(ctx context.Context, dir, name string, args []string) (*Job, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("sbatch"); err != nil {
		return nil, fmt.Errorf("cluster: there is no command sbatch on PATH: %w; run this on a machine of the cluster from which jobs are submitted", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cluster: making the job's folder: %w", err)
	}
	for _, old := range []string{startedFile, stopFile, idFile} {
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	if err := copyProgram(filepath.Join(dir, programFile)); err != nil {
		return nil, fmt.Errorf("cluster: copying the program into the job's folder: %w", err)
	}
	proof, token := randomText(), randomText()
	for file, text := range map[string]string{proofFile: proof + "\n", tokenFile: token + "\n"} {
		if err := atomicfile.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	script := b.script(dir, name, proof, args)
	if err := atomicfile.WriteFile(filepath.Join(dir, scriptFile), []byte(script), 0o755); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	out, err := slurm(ctx, "sbatch", "--parsable", filepath.Join(dir, scriptFile))
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	if _, err := strconv.Atoi(id); err != nil {
		return nil, fmt.Errorf("cluster: sbatch answered %q instead of the number of a job", out)
	}
	j := &Job{ID: id, Dir: dir, Submitted: time.Now().UTC().Truncate(time.Second)}
	raw, err := json.Marshal(j)
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(dir, idFile), append(raw, '\n'), 0o644)
	}
	return j, err
}

// script is the batch script.
func (b Batch) script(dir, name, proof string, args []string) string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	line("#!/bin/bash")
	for _, o := range append([]string{
		"--job-name=" + jobName(name), "--nodes=" + strconv.Itoa(b.Nodes), "--ntasks-per-node=" + strconv.Itoa(max(1, b.RanksPerNode)),
		"--requeue", "--signal=TERM@60", "--output=/dev/null", "--chdir=/",
	}, b.Options...) {
		line("#SBATCH %s", o)
	}
	line("dir=%s", quote(dir))
	line(`if [ "$(cat "$dir/%s" 2>/dev/null)" != %s ]; then exit %d; fi # this machine does not share the folder`, proofFile, proof, exitNotShared)
	line(`exec >>"$dir/%s" 2>&1 </dev/null`, outputFile)
	line(`echo "job $SLURM_JOB_ID runs on $SLURM_JOB_NODELIST"`)
	line(`echo "$SLURM_JOB_NODELIST" >"$dir/%s"`, startedFile)
	line(`if [ -e "$dir/%s" ]; then exit 0; fi`, stopFile)
	line("unset GNB_TOKEN") // sbatch passes on the environment
	line(`export GNB_TOKEN_FILE="$dir/%s"`, tokenFile)
	line(`if [ -n "$SLURM_CPUS_PER_TASK" ]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi`)
	if b.Setup != "" {
		line("%s", b.Setup)
	}
	words := []string{cmp.Or(b.Launcher, "srun"), `"$dir/` + programFile + `"`}
	for _, a := range args {
		words = append(words, quote(a))
	}
	line("%s", strings.Join(words, " "))
	line("status=$?")
	line(`again=0; if [ $status = %d ]; then again=1; fi`, ExitResumable)
	line(`if { [ $status = %d ] || [ $status -gt 128 ]; } && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then again=1; fi`, ExitLost)
	line(`if [ $again = 1 ] && ! [ -e "$dir/%s" ]; then scontrol requeue "$SLURM_JOB_ID"; fi`, stopFile)
	line("exit $status")
	return s.String()
}

// jobName is name without the characters that could end the line or the option of a batch script.
func jobName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, name)
}

// quote quotes a word for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func randomText() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return hex.EncodeToString(b[:])
}

// copyProgram copies this process's executable, whose file may be gone, as a notebook's is after the
// next cell was compiled.
func copyProgram(to string) (err error) {
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to) // a job may be running the file of before
}

// OpenJob returns the job that was last submitted with a folder, or an error that matches
// os.ErrNotExist.
func OpenJob(dir string) (*Job, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, idFile))
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	j := &Job{Dir: dir}
	if err := json.Unmarshal(raw, j); err != nil || j.ID == "" {
		return nil, fmt.Errorf("cluster: %s is damaged", filepath.Join(dir, idFile))
	}
	return j, nil
}

// JobState is the state of a job as Slurm reports it.
type JobState struct {
	// Name is Slurm's: "PENDING", "RUNNING", "COMPLETED" and so on; "" if Slurm has forgotten the job.
	Name string
	// Why is the reason for which a job waits, such as "Resources".
	Why string
	// Nodes are the job's machines, as "n[1-2]".
	Nodes string
	// Exit is the exit status of the batch script, after it has ended.
	Exit int
}

// Waits reports whether the job waits for machines.
func (s JobState) Waits() bool {
	return slices.Contains([]string{"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", "SUSPENDED"}, s.Name)
}

// Ended reports whether the job has ended, and will not start again by itself.
func (s JobState) Ended() bool {
	return !s.Waits() && !slices.Contains([]string{"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}, s.Name)
}

// State asks Slurm for the job's state.
func (j *Job) State(ctx context.Context) (JobState, error) {
	out, err := slurm(ctx, "scontrol", "--oneliner", "show", "job", j.ID)
	if err != nil {
		if strings.Contains(err.Error(), "Invalid job id") { // scontrol's text, which is all that it says
			return JobState{}, nil
		}
		return JobState{}, err
	}
	var s JobState
	for word := range strings.FieldsSeq(string(out)) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "JobState":
			s.Name = value
		case "Reason":
			s.Why = value
		case "NodeList":
			if value != "(null)" {
				s.Nodes = value
			}
		case "ExitCode":
			code, _, _ := strings.Cut(value, ":")
			s.Exit, _ = strconv.Atoi(code)
		}
	}
	return s, nil
}

// NotShared returns the error of a job that ended because its machine does not see the job's folder,
// else nil.
func (j *Job) NotShared(s JobState) error {
	if s.Exit != exitNotShared || s.Name != "FAILED" {
		return nil
	}
	return fmt.Errorf("cluster: job %s cannot run: its machine %s does not see the folder %s of this machine; put the run into a folder that all machines share, with RunDir or GNB_RUNS", j.ID, s.Nodes, j.Dir)
}

// Stop asks the job to write a checkpoint and end, and not to start again. A job that waits is
// cancelled.
func (j *Job) Stop(ctx context.Context) error {
	err := atomicfile.WriteFile(filepath.Join(j.Dir, stopFile), nil, 0o644)
	if s, e := j.State(ctx); e == nil && s.Waits() {
		_, e = slurm(ctx, "scancel", j.ID)
		return errors.Join(err, e)
	}
	_, e := slurm(ctx, "scancel", "--signal=INT", j.ID)
	if err == nil {
		return nil // the file alone is enough, because the job checks for it
	}
	return errors.Join(err, e)
}

// Stopping reports whether [Job.Stop] was called.
func (j *Job) Stopping() bool { return stopped(j.Dir) }

func stopped(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stopFile))
	return err == nil
}

// WatchStop calls f once the job with the folder dir is asked to stop, until the returned function
// is called.
func WatchStop(dir string, f func()) (end func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if stopped(dir) {
					f()
					return
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// Output returns the last lines that the job's ranks printed, "" if there are none.
func (j *Job) Output(lines int) string {
	f, err := os.Open(filepath.Join(j.Dir, outputFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 8 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd) // a regular file
	}
	b, _ := io.ReadAll(f)
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// slurm runs one of Slurm's commands. A notebook's variables stay out of its environment, which
// sbatch copies into the job.
func slurm(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GONB_") || strings.HasPrefix(e, envknob.Kernel.Name)
	})
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(problems.String())
		if said == "" {
			said = err.Error()
		}
		return nil, fmt.Errorf("cluster: %s: %s", name, said)
	}
	return out.Bytes(), nil
}

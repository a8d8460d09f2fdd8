package docker

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

var update = flag.Bool("update", false, "write testdata/trainjob.json and testdata/manifests.json")

// workload is what the tests read of a workload that tools/kubernetes prints.
type workload struct {
	File, Kind string
	JobSet     *jobSet
	Pods       []pod
	Claims     []string
}

type pod struct {
	Host         string
	Command      []string
	Env, Secrets map[string]string
}

type jobSet struct {
	Spec struct {
		Network       struct{ PublishNotReadyAddresses bool }
		FailurePolicy struct {
			MaxRestarts int
			Rules       []struct {
				Action                                           string
				OnJobFailureReasons, OnJobFailureMessagePatterns []string
			}
		}
		ReplicatedJobs []struct {
			Template struct{ Spec job }
		}
	}
}

type job struct {
	Parallelism, Completions int
	CompletionMode           string
	BackoffLimit             *int
	PodFailurePolicy         struct {
		Rules []struct {
			Action      string
			OnExitCodes struct {
				ContainerName, Operator string
				Values                  []int
			}
		}
	}
	Template struct {
		Spec struct {
			RestartPolicy                 string
			TerminationGracePeriodSeconds int
			SecurityContext               struct {
				RunAsNonRoot       bool
				RunAsUser, FSGroup int
			}
			Containers []struct {
				Name, Image  string
				VolumeMounts []struct{ Name, MountPath string }
				Resources    struct{ Requests, Limits map[string]string }
			}
			Volumes []struct {
				Name                  string
				EmptyDir              struct{ Medium, SizeLimit string }
				PersistentVolumeClaim struct{ ClaimName string }
			}
		}
	}
}

// checkManifests checks files by tools/kubernetes, and returns their workloads.
func checkManifests(t *testing.T, tags string, files ...string) ([]workload, error) {
	t.Helper()
	var args []string
	for _, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, abs)
	}
	c := exec.Command(program(t, "tools/kubernetes", ".", tags), args...)
	c.Dir = filepath.Join(root, "tools", "kubernetes") // it asks the go command where its modules are
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	var ws []workload
	err = json.Unmarshal(out, &ws)
	for i := range ws {
		ws[i].File = filepath.Base(ws[i].File)
	}
	return ws, err
}

// recordedTrainJob is the JobSet that Trainer made of trainjob.yaml, with a digest of that file.
const recordedTrainJob = "testdata/trainjob.json"

// trainJobDigest identifies trainjob.yaml and the version of Trainer.
func trainJobDigest(t *testing.T) string {
	h := sha256.New()
	for _, file := range []string{"kubernetes/trainjob.yaml", filepath.Join(root, "tools", "kubernetes", "go.mod")} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%d\n%s", len(b), b)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

type record struct {
	Digest   string
	Workload json.RawMessage
}

// Trainer's own code accepts trainjob.yaml and builds the recorded JobSet from it. Compiling that code
// takes minutes, so this runs with GNB_SOAK=1 only.
func TestTrainJobIsBuiltByTrainer(t *testing.T) {
	if os.Getenv("GNB_SOAK") == "" && !*update {
		testneed.Skip(t, testneed.Soak, "it compiles Kubeflow Trainer's controller")
	}
	ws, err := checkManifests(t, "trainer", "kubernetes/trainjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	built, err := json.MarshalIndent(ws[0], "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	built = append(built, '\n')
	if *update {
		text, err := json.MarshalIndent(record{trainJobDigest(t), built}, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recordedTrainJob, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if recorded := trainJob(t); !reflect.DeepEqual(ws[0], recorded) {
		t.Errorf("Trainer builds\n%s\nand %s has %+v", built, recordedTrainJob, recorded)
	}
	reserved := edited(t, "kubernetes/trainjob.yaml", "    args: [gnb, train, planted", "    env: [{name: PET_NNODES, value: \"3\"}]\n    args: [gnb, train, planted")
	if _, err := checkManifests(t, "trainer", reserved); err == nil || !strings.Contains(err.Error(), "reserved envs") {
		t.Errorf("a TrainJob that sets a variable of Trainer's passed: %v", err)
	}
}

// trainJob returns the recorded JobSet of trainjob.yaml.
func trainJob(t *testing.T) (w workload) {
	t.Helper()
	b, err := os.ReadFile(recordedTrainJob)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if r.Digest != trainJobDigest(t) {
		t.Fatal("trainjob.yaml or Trainer's version has changed; record what Trainer makes of it: go test ./docker -run TestTrainJobIsBuiltByTrainer -update")
	}
	if err := json.Unmarshal(r.Workload, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// edited returns a copy of a file in which a text is replaced.
func edited(t *testing.T, file, old, replacement string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(b), old) != 1 {
		t.Fatalf("%s does not have %q once", file, old)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, []byte(strings.Replace(string(b), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

// faultyManifests are edits that the types and schemas of Kubernetes, JobSet and Trainer refuse.
var faultyManifests = map[string]struct{ file, old, replacement, want string }{
	"an unknown field":   {"kubernetes/jobset.yaml", "maxRestarts:", "maxRestart:", "maxRestart"},
	"an unknown action":  {"kubernetes/jobset.yaml", "action: FailJobSet", "action: Fail", "Unsupported value"},
	"a word as a number": {"kubernetes/jobset.yaml", "parallelism: 2", "parallelism: two", "parallelism"},
	"a field of a pod":   {"kubernetes/trainjob.yaml", "restartPolicy: Never", "restart: Never", "restart"},
	"a field of Trainer": {"kubernetes/trainjob.yaml", "numNodes: 2", "nodes: 2", "nodes"},
	"two ML policies":    {"kubernetes/trainjob.yaml", "torch: {}", "mpi: {}\n    torch: {}", "Only one of the policy"},
}

// verdict is what tools/kubernetes finds in the manifests and in the faulty ones, with a digest of all of them and of
// that program.
type verdict struct {
	Digest    string
	Workloads json.RawMessage
	Faults    map[string]string // the error of each faulty manifest
}

// recordedVerdict is the verdict that "go test ./docker -run TestManifests -update" has recorded.
const recordedVerdict = "testdata/manifests.json"

// manifestsDigest identifies the manifests, the faulty ones, and the program that checks them.
func manifestsDigest(t *testing.T) string {
	h := sha256.New()
	files := []string{"kubernetes/*.yaml"}
	for _, name := range []string{"*.go", "go.mod", "go.sum"} {
		files = append(files, filepath.Join(root, "tools", "kubernetes", name))
	}
	for _, pattern := range files {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no file is named %s (%v)", pattern, err)
		}
		for _, file := range found {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(h, "%s %d\n%s", file, len(b), b)
		}
	}
	fmt.Fprint(h, faultyManifests) // in the order of the keys
	return fmt.Sprintf("%x", h.Sum(nil))
}

// judge lets tools/kubernetes check the manifests and the faulty ones.
func judge(t *testing.T) verdict {
	t.Helper()
	v := verdict{Digest: manifestsDigest(t), Faults: map[string]string{}}
	ws, err := checkManifests(t, "", "kubernetes/volume.yaml", "kubernetes/jobset.yaml", "kubernetes/trainjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if v.Workloads, err = json.Marshal(ws); err != nil {
		t.Fatal(err)
	}
	for name, bad := range faultyManifests {
		_, err := checkManifests(t, "", edited(t, bad.file, bad.old, bad.replacement))
		if err == nil {
			t.Fatalf("%s passed the check", name)
		}
		_, reason, _ := strings.Cut(err.Error(), bad.file[strings.LastIndexByte(bad.file, '/'):]) // without the temporary folder
		v.Faults[name] = reason
	}
	return v
}

// The manifests are valid by the types and schemas of Kubernetes, JobSet and Trainer, and start ranks that
// know their place, prove a token, write checkpoints in time and are started again. Compiling the program that checks
// them takes a minute, so its verdict is recorded: the test fails if the manifests or the program have changed since,
// and with GNB_SOAK=1 the program checks again.
func TestManifests(t *testing.T) {
	b, err := os.ReadFile(recordedVerdict)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var v verdict
	if err := json.Unmarshal(b, &v); err != nil && !*update {
		t.Fatal(err)
	}
	if *update || testneed.Soak.Here() {
		if v = judge(t); *update {
			text, err := json.MarshalIndent(v, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(recordedVerdict, append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if v.Digest != manifestsDigest(t) {
		t.Fatal("the manifests, or tools/kubernetes, which checks them, have changed; check them: go test ./docker -run TestManifests -update")
	}
	for name, bad := range faultyManifests {
		if reason := v.Faults[name]; reason == "" || !strings.Contains(reason, bad.want) {
			t.Errorf("%s: %q, want an error with %q", name, reason, bad.want)
		}
	}
	var ws []workload
	if err := json.Unmarshal(v.Workloads, &ws); err != nil {
		t.Fatal(err)
	}
	if len(ws) != 3 || len(ws[0].Claims) != 1 || ws[1].JobSet == nil || ws[2].Kind != "TrainJob" {
		t.Fatalf("the manifests hold %+v", ws)
	}
	for _, w := range []workload{ws[1], trainJob(t)} {
		t.Run(w.Kind, func(t *testing.T) {
			if testing.Short() {
				t.Skip("it builds gnb")
			}
			checkRanks(t, w)
			checkJob(t, w, ws[0].Claims[0])
			checkRestarts(t, w)
		})
	}
}

// checkRanks runs each pod's command with the pod's environment and a gnb that prints its own: the pods
// are the ranks of one world, which meet at rank 0.
func checkRanks(t *testing.T, w workload) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "gnb"), []byte("#!/bin/sh\nprintf '%s ' \"$@\" >&2\nexec env\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, p := range w.Pods {
		c := exec.Command(p.Command[0], p.Command[1:]...)
		c.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		if p.Command[0] == "gnb" {
			c.Path, c.Err = filepath.Join(bin, "gnb"), nil
		}
		for name, value := range p.Env {
			c.Env = append(c.Env, name+"="+value)
		}
		var asked strings.Builder
		c.Stderr = &asked
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", p.Host, err, &asked)
		}
		if i == 0 {
			commandExists(t, append([]string{"gnb"}, strings.Fields(asked.String())...))
		}
		for line := range strings.Lines(string(out)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.HasPrefix(name, "MASTER_") || strings.HasSuffix(name, "RANK") || strings.HasSuffix(name, "WORLD_SIZE") {
				t.Setenv(name, value)
			}
		}
		place, err := cluster.Detect()
		if err != nil || place == nil {
			t.Fatalf("%s: the environment is of no rank: %v", p.Host, err)
		}
		if place.Rank != i || place.World != len(w.Pods) || place.LocalRank != 0 || place.LocalWorld != 1 || place.Master != w.Pods[0].Host+":29500" {
			t.Errorf("%s: %+v, want rank %d of %d, alone on its node, with rank 0 at %s", p.Host, *place, i, len(w.Pods), w.Pods[0].Host)
		}
		if p.Secrets["GNB_TOKEN"] != "graphnb/token" || p.Env["GNB_TOKEN"] != "" || p.Env["GNB_INSECURE"] != "" {
			t.Errorf("%s: the token is not from a secret: %v, %v", p.Host, p.Secrets, p.Env)
		}
	}
	if !w.JobSet.Spec.Network.PublishNotReadyAddresses {
		t.Error("ranks cannot find rank 0 before it is ready")
	}
}

// checkJob checks the pods' volumes, user, image and resources.
func checkJob(t *testing.T, w workload, claim string) {
	t.Helper()
	j := w.JobSet.Spec.ReplicatedJobs[0].Template.Spec
	if j.Parallelism != len(w.Pods) || j.Completions != len(w.Pods) || j.CompletionMode != "Indexed" {
		t.Errorf("%d of %d pods run at a time, numbered by %q; all ranks must", j.Parallelism, j.Completions, j.CompletionMode)
	}
	spec := j.Template.Spec
	if spec.SecurityContext.RunAsUser != 1000 || spec.SecurityContext.FSGroup != 1000 || !spec.SecurityContext.RunAsNonRoot {
		t.Errorf("pods run as %+v; the image's user is 1000", spec.SecurityContext)
	}
	if spec.TerminationGracePeriodSeconds < 60 {
		t.Errorf("a rank has %d s to write its checkpoint", spec.TerminationGracePeriodSeconds)
	}
	c := spec.Containers[0]
	if c.Image != "graphnb:cpu" {
		t.Errorf("the image %q is not the one that Dockerfile.cpu names", c.Image)
	}
	for _, r := range []string{"cpu", "memory"} {
		if c.Resources.Requests[r] == "" || c.Resources.Requests[r] != c.Resources.Limits[r] {
			t.Errorf("%s: requested %q, limit %q; a rank that is short of it stalls all", r, c.Resources.Requests[r], c.Resources.Limits[r])
		}
	}
	at := map[string]string{}
	for _, m := range c.VolumeMounts {
		at[m.MountPath] = m.Name
	}
	var shm, work bool
	for _, v := range spec.Volumes {
		shm = shm || v.Name == at["/dev/shm"] && v.EmptyDir.Medium == "Memory" && v.EmptyDir.SizeLimit == "1Gi"
		work = work || v.Name == at["/home/graphnb/work"] && v.PersistentVolumeClaim.ClaimName == claim
	}
	if !shm || !work {
		t.Errorf("volumes %+v at %v; want 1 GiB of memory at /dev/shm, and the claim %q where the image works", spec.Volumes, at, claim)
	}
}

// checkRestarts follows a rank's exit status through the job's and the JobSet's policies.
func checkRestarts(t *testing.T, w workload) {
	t.Helper()
	j := w.JobSet.Spec.ReplicatedJobs[0].Template.Spec
	if j.BackoffLimit == nil || *j.BackoffLimit != 0 || j.Template.Spec.RestartPolicy != "Never" || w.JobSet.Spec.FailurePolicy.MaxRestarts < 1 {
		t.Errorf("a pod could be started again without the others: backoffLimit %v, restartPolicy %q, maxRestarts %d", j.BackoffLimit, j.Template.Spec.RestartPolicy, w.JobSet.Spec.FailurePolicy.MaxRestarts)
	}
	for status, want := range map[int]string{multigpu.ExitResumable: "RestartJobSetAndIgnoreMaxRestarts", 2: "FailJobSet", 1: "FailJobSet", multigpu.ExitLost: "RestartJobSet", 137: "RestartJobSet"} {
		// The job's condition, as Kubernetes words it.
		reason, message := "BackoffLimitExceeded", "Job has reached the specified backoff limit"
		for i, r := range j.PodFailurePolicy.Rules {
			if r.Action == "FailJob" && r.OnExitCodes.Operator == "In" && r.OnExitCodes.ContainerName == j.Template.Spec.Containers[0].Name && slices.Contains(r.OnExitCodes.Values, status) {
				reason = "PodFailurePolicy"
				message = fmt.Sprintf("Container %s for pod default/%s-x7k2p failed with exit code %d matching FailJob rule at index %d", r.OnExitCodes.ContainerName, "graphnb-0-1", status, i)
			}
		}
		got := "RestartJobSet" // JobSet's default
		for _, r := range slices.Backward(w.JobSet.Spec.FailurePolicy.Rules) {
			if slices.Contains(r.OnJobFailureReasons, reason) && slices.ContainsFunc(r.OnJobFailureMessagePatterns, func(p string) bool { return regexp.MustCompile(p).MatchString(message) }) {
				got = r.Action
			}
		}
		if got != want {
			t.Errorf("exit status %d leads to %s, want %s", status, got, want)
		}
	}
}

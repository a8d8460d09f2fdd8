package notebooks_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A notebook's cell, exported by "gnb export", is a program that trains with its own workers or, under a launcher, as one of
// its ranks, to the same bits. Its imports are those that the kernel would have added.
func TestExport(t *testing.T) {
	env := nbtest.Setup(t)
	notebook := notebookOf(t,
		"const epochs = 1",
		"const epochs = 2\nfunc dataset() string { return \"planted?nodes=600&classes=3\" }",
		"!true\n%%\nctx := context.Background()\nds := gnb.Must(gnb.Load(ctx, dataset()))\nvar o gnb.TrainOptions\no.Epochs, o.Threads, o.Device, o.Quiet, o.RunDir = epochs, 1, \"cpu\", true, os.Getenv(\"OUT\")\nrun := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, o))\nfmt.Println(\"weights\", run.Config.Workers, run.Result.Epochs, run.Result.Weights[\"model.safetensors\"])",
	)
	dir := filepath.Join(t.TempDir(), "made")
	command := func() ([]byte, error) {
		c := exec.CommandContext(t.Context(), env.Gnb, "export", notebook, "--out", dir)
		c.Dir, c.Env = t.TempDir(), append(os.Environ(), envknob.Kernel.Name+"="+nbtest.KernelName) // as in a cell: outside the checkout
		return c.CombinedOutput()
	}
	if text, err := command(); err != nil || !bytes.Contains(text, []byte("left out: code cell 3: the command !true")) {
		t.Fatalf("gnb export: %v: %s", err, text)
	}
	if text, err := command(); err == nil || !bytes.Contains(text, []byte("exists already")) {
		t.Errorf("a second export over the first one: %v: %s", err, text)
	}
	start := func(set ...string) (*exec.Cmd, *bytes.Buffer) {
		c, out := exec.CommandContext(t.Context(), filepath.Join(dir, "made")), new(bytes.Buffer)
		c.Dir, c.Env, c.Stdout, c.Stderr = t.TempDir(), append(os.Environ(), set...), out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, out
	}
	weights := func(out *bytes.Buffer) string {
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "weights 2 2 ") {
				return line
			}
		}
		return ""
	}
	own, out := start(envknob.Workers.Name+"=2", "OUT="+t.TempDir())
	if err := own.Wait(); err != nil || weights(out) == "" {
		t.Fatalf("with its own workers: %v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	to := t.TempDir()
	var ranks [2]*exec.Cmd
	var outs [2]*bytes.Buffer
	for r := range ranks {
		ranks[r], outs[r] = start(fmt.Sprintf("RANK=%d", r), fmt.Sprintf("LOCAL_RANK=%d", r), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port, "OUT="+to)
	}
	for r, c := range ranks {
		if err := c.Wait(); err != nil {
			t.Errorf("rank %d: %v: %s", r, err, outs[r])
		}
	}
	if weights(outs[0]) != weights(out) || weights(outs[1]) != "" {
		t.Errorf("rank 0 printed %q, the run with own workers %q; rank 1 %q", outs[0], out, outs[1])
	}
	if !testneed.Soak.Here() {
		return
	}
	t.Run("srun", func(t *testing.T) {
		c := clustertest.Slurm(t).Command("srun", "-n", "2", filepath.Join(dir, "made"))
		c.Dir, c.Env = t.TempDir(), append(c.Env, "OUT="+t.TempDir())
		text, err := c.CombinedOutput()
		if err != nil || strings.Count(string(text), "weights 2 2 ") != 1 || weights(bytes.NewBuffer(text)) != weights(out) {
			t.Errorf("srun: %v: %s; with own workers: %s", err, text, out)
		}
	})
}

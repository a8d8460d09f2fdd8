package setup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/nvmlstat"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/mpi"
)

// Version is "gnb version".
var Version = cli.Command{Name: "version", Summary: "print the version of gnb and what it was built with", Run: printVersion}

const versionHelp = `
Prints the version of gnb, the revision and the Go it was built from, and the parts that this build
lacks: a binary built without a C compiler cannot ask NVML for GPUs, one built without -tags cuda
trains on the CPU only, and one built without -tags mpi does not use MPI.`

// build describes this program's build.
type build struct {
	Version  string   `json:"version"`            // version of the library
	Module   string   `json:"module,omitempty"`   // the module's version, where it has one
	Revision string   `json:"revision,omitempty"` // the commit, where the build recorded it
	Modified bool     `json:"modified,omitempty"` // the checkout had changes that are in no commit
	Go       string   `json:"go"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Cgo      bool     `json:"cgo"`
	Tags     []string `json:"tags,omitempty"`
	MPI      string   `json:"mpi,omitempty"`   // the MPI library that it was built for, with its version
	Lacks    []string `json:"lacks,omitempty"` // missing features of this build, and how to get them
}

// readBuild reads what the compiler recorded in this program.
func readBuild() build {
	b := build{Version: gnb.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, MPI: mpi.Library()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "(devel)" {
			b.Module = v
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			case "CGO_ENABLED":
				b.Cgo = s.Value == "1"
			case "-tags":
				b.Tags = strings.Split(s.Value, ",")
			}
		}
	}
	if b.OS != "linux" {
		return b // GPUs and runs under a launcher are for Linux
	}
	if !nvmlstat.Built {
		b.Lacks = append(b.Lacks, `GPUs in "gnb monitor" (NVML needs cgo): "go install ./gnb/cmd/gnb" in a checkout of GraphNB, with a C compiler`)
	}
	if !b.Cgo || !slices.Contains(b.Tags, "cuda") {
		b.Lacks = append(b.Lacks, `training on GPUs (-tags cuda): "gnb install --cuda" builds it for notebooks`)
	}
	if b.MPI == "" {
		b.Lacks = append(b.Lacks, `MPI between the ranks of mpirun (-tags mpi; they use TCP instead): ". scripts/mpi-env.sh && go build -tags mpi ./gnb/cmd/gnb" in GraphNB's sources`)
	}
	return b
}

// Release is the version and the revision of this program.
func Release() string { return readBuild().release() }

func (b build) release() string {
	s := b.Version
	if b.Module != "" {
		s += " (" + b.Module + ")"
	}
	if b.Revision != "" {
		s += " revision " + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += " with local changes"
		}
	}
	return s
}

// String returns one line: version, revision, Go and platform.
func (b build) String() string {
	s := "gnb " + b.release()
	s += fmt.Sprintf(", %s %s/%s", b.Go, b.OS, b.Arch)
	if b.Cgo {
		s += ", cgo"
	}
	if len(b.Tags) > 0 {
		s += ", -tags " + strings.Join(b.Tags, ",")
	}
	if b.MPI != "" {
		s += ", " + b.MPI
	}
	return s
}

func printVersion(_ context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("", versionHelp)
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	b := readBuild()
	out.Printf("%s\n", b)
	for _, l := range b.Lacks {
		out.Printf("lacks %s\n", l)
	}
	out.Result(b)
	return nil
}

// checkBuild returns the doctor's finding about this program.
func checkBuild(context.Context, patient) check {
	b := readBuild()
	text := b.String()
	if len(b.Lacks) > 0 {
		text += "; lacks " + strings.Join(b.Lacks, "; ")
	}
	return good("%s", text)
}

// checkSystem returns the doctor's finding about the operating system and the processor.
func checkSystem(context.Context, patient) check {
	return good("%s; %s, %d CPUs, %s kernels", systemName(), machine.CPUModel(), runtime.NumCPU(), simd.Best())
}

// systemName returns the distribution and the kernel's release, or the operating system's name.
func systemName() string {
	name := runtime.GOOS
	if text, err := os.ReadFile("/etc/os-release"); err == nil {
		for line := range bytes.Lines(text) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "PRETTY_NAME="); ok {
				name = strings.Trim(v, `"'`)
			}
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		name += ", Linux " + strings.TrimSpace(string(release))
	}
	return name
}

package libs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine creates files below a root directory of the test, and clears the environment variables
// that Find reads.
func machine(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	rootDir = dir
	t.Cleanup(func() { rootDir = "" })
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "GNB_VENV", "VIRTUAL_ENV", "CONDA_PREFIX", "GNB_LIBCUBLAS", "GNB_LIBNCCL"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	for _, f := range files {
		f = filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	const (
		toolkit11 = "usr/local/cuda-11.8/lib64/libcublas.so.11"
		toolkit12 = "usr/local/cuda/lib64/libcublas.so.12"
		wheel12   = "home/.local/lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12"
		wheel13   = "env/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13"
		system    = "usr/lib64/libnccl.so.2"
		exact     = "usr/lib64/libnccl.so.2.21.5"
		ncclWheel = "env/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
	)
	for name, c := range map[string]struct {
		kind   Kind
		driver int
		files  []string
		want   []string
	}{
		"newest that the driver takes": {CuBLAS, 12040, []string{toolkit11, toolkit12, wheel13}, []string{toolkit12, toolkit11}},
		"newest":                       {CuBLAS, 13000, []string{toolkit11, toolkit12, wheel13}, []string{wheel13, toolkit12, toolkit11}},
		"a wheel before a toolkit":     {CuBLAS, 12000, []string{toolkit12, wheel12}, []string{wheel12, toolkit12}},
		"any driver":                   {CuBLAS, 0, []string{wheel13}, []string{wheel13}},
		"system":                       {NCCL, 12040, []string{system, exact}, []string{system}},
		"wheel":                        {NCCL, 11080, []string{system, ncclWheel}, []string{ncclWheel, system}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := machine(t, c.files...)
			t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
			got, err := Find(c.kind, c.driver)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for i, l := range got {
				if l.Path != filepath.Join(dir, c.want[i]) {
					t.Errorf("%d: %s, want %s", i, l.Path, c.want[i])
				}
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	dir := machine(t, "env/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13")
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
	for name, c := range map[string]struct {
		kind  Kind
		env   string
		words []string
	}{
		"too new": {CuBLAS, "", []string{"driver supports CUDA 12", "cuBLAS found is for CUDA 13", "pip install nvidia-cublas-cu12", "GNB_LIBCUBLAS"}},
		"absent":  {NCCL, "", []string{"not found in the CUDA folders", "pip install nvidia-nccl-cu12"}},
		"named":   {NCCL, "/nowhere/libnccl.so.2", []string{"GNB_LIBNCCL", "/nowhere/libnccl.so.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.kind.Env, c.env)
			_, err := Find(c.kind, 12040)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// Find returns the wheels of the python3 on PATH, and those of the Python from which its
// environment was made.
func TestPythonOnPath(t *testing.T) {
	const (
		own   = "env/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
		other = "opt/python/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
		last  = "usr/lib64/libnccl.so.2"
	)
	dir := machine(t, own, other, last, "opt/python/bin/python3.12", "env/bin/pip")
	if err := os.Chmod(filepath.Join(dir, "opt/python/bin/python3.12"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "opt/python/bin/python3.12"), filepath.Join(dir, "env/bin/python3")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "nowhere")+string(filepath.ListSeparator)+filepath.Join(dir, "env/bin"))
	got, err := Find(NCCL, 12040)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{own, other, last} {
		if len(got) != 3 || got[i].Path != filepath.Join(dir, want) {
			t.Fatalf("%d: %v, not %s", i, got, want)
		}
	}
}

// Find reads in an NCCL library for which CUDA version it is built.
func TestNCCLOfNewerCUDA(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	path := os.Getenv("PATH")
	const wheel, system = "env/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", "usr/lib64/libnccl.so.2"
	dir := machine(t, wheel, system)
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
	build := func(file, version string) {
		t.Helper()
		c := exec.Command(gcc, "-shared", "-fPIC", "-xc", "-o", filepath.Join(dir, file), "-")
		c.Env = append(os.Environ(), "PATH="+path)
		c.Stdin = strings.NewReader("const char *version(void) { return \"" + version + "\"; }\n")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build(wheel, "NCCL version 2.28.3+cuda13.0")
	build(system, "NCCL version 2.21.5+cuda12.4")
	for driver, want := range map[int]string{0: wheel, 11080: "", 12020: system, 13000: wheel} {
		got, err := Find(NCCL, driver)
		switch {
		case want == "":
			if err == nil || !strings.Contains(err.Error(), "the driver supports CUDA 11, but the only NCCL found is for CUDA 13") {
				t.Errorf("%d: %v, %v", driver, got, err)
			}
		case err != nil || got[0].Path != filepath.Join(dir, want):
			t.Errorf("%d: %v, %v; want %s", driver, got, err, want)
		}
	}
}

func TestNamedFile(t *testing.T) {
	dir := machine(t, "mine/libnccl-test.so", "usr/lib64/libnccl.so.2")
	file := filepath.Join(dir, "mine/libnccl-test.so")
	t.Setenv("GNB_LIBNCCL", file)
	got, err := Find(NCCL, 12040)
	if err != nil || len(got) != 1 || got[0].Path != file {
		t.Errorf("%v, %v", got, err)
	}
}

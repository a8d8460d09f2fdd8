// Package libs finds cuBLAS and NCCL, the libraries that a GPU run uses in addition to the driver. It loads
// one only when asked. It searches the file named by an environment variable, CUDA's folders, the
// system's folders, and the folders of the PyPI wheels (such as nvidia-cublas-cu12 and
// nvidia-nccl-cu12).
package libs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Kind is a library.
type Kind struct {
	Name   string // for people
	Env    string // the environment variable that names its file
	soname string // without the version
	wheel  string // its folder in the wheels
	pip    string // the wheel's name, with %d for CUDA's major version
}

// The libraries.
var (
	CuBLAS = Kind{"cuBLAS", envknob.LibCuBLAS.Name, "libcublas.so", "cublas", "nvidia-cublas-cu%d"}
	NCCL   = Kind{"NCCL", envknob.LibNCCL.Name, "libnccl.so", "nccl", "nvidia-nccl-cu%d"}
)

// Wheel is the name of the PyPI wheel that has the library, for a major version of CUDA.
func (k Kind) Wheel(major int) string {
	if k == CuBLAS && major >= 13 {
		return "nvidia-cublas" // CUDA 13's wheels have no suffix
	}
	return fmt.Sprintf(k.pip, major)
}

// Library is a file found.
type Library struct {
	Path string
	// Major is the number at the end of the file's name: CUDA's major version for cuBLAS, 2 for NCCL.
	Major int
}

// Find returns the files of a library, the best first. driver is the CUDA version of the driver,
// such as 12040: files built for a newer major version are left out; 0 includes all. If the
// variable is set, the file that it names is the only one. If none is found, the error lists the
// places searched and how to install the library.
func Find(k Kind, driver int) ([]Library, error) {
	if file := os.Getenv(k.Env); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, phrase.Errorf("cuda", "the file named by %s is not %s: %w", k.Env, k.Name, err)
		}
		return []Library{{file, major(file)}}, nil
	}
	var all []Library
	newer := 0
	for _, dir := range k.folders() {
		files, err := filepath.Glob(filepath.Join(dir, k.soname+".*"))
		if err != nil {
			continue // the folder's name has a bracket
		}
		for _, f := range files {
			l := Library{f, major(f)}
			switch {
			case l.Major < 0: // libnccl.so.2.21.5: libnccl.so.2 is beside it
			case slices.Contains(all, l):
			case driver > 0 && k.cuda(l) > driver/1000:
				newer = max(newer, k.cuda(l))
			default:
				all = append(all, l)
			}
		}
	}
	if len(all) == 0 {
		want := driver / 1000
		if want == 0 {
			want = 12
		}
		why := "it was not found in the CUDA folders, the system folders or the wheels"
		if newer > 0 {
			why = fmt.Sprintf("the driver supports CUDA %d, but the only %s found is for CUDA %d", driver/1000, k.Name, newer)
		}
		return nil, phrase.Errorf("cuda", "no %s: %s; install it with \"pip install %s\", or set %s to its file",
			k.Name, why, k.Wheel(want), k.Env)
	}
	// Stable: among equals the folder that comes first.
	slices.SortStableFunc(all, func(a, b Library) int { return -cmp.Compare(a.Major, b.Major) })
	return all, nil
}

// cuda returns the major version of CUDA that a library is built for, 0 if unknown.
func (k Kind) cuda(l Library) int {
	if k == CuBLAS {
		return l.Major
	}
	return ncclCUDA(l.Path)
}

// major returns the only number after ".so.", or -1.
func major(file string) int {
	_, v, _ := strings.Cut(filepath.Base(file), ".so.")
	n, err := strconv.Atoi(v)
	if err != nil {
		return -1
	}
	return n
}

// folders returns where a library may be, in order of preference.
func (k Kind) folders() []string {
	var dirs []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if d := os.Getenv(v); d != "" {
			dirs = append(dirs, filepath.Join(d, "lib64"))
		}
	}
	dirs = append(dirs, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
	for _, site := range sitePackages() {
		dirs = append(dirs, filepath.Join(site, "nvidia", k.wheel, "lib"))
		for _, cu := range []string{"cu13", "cu14"} { // CUDA 13's wheels share a folder
			dirs = append(dirs, filepath.Join(site, "nvidia", cu, "lib"))
		}
	}
	dirs = append(dirs, root("/usr/local/cuda/lib64"))
	if found, err := filepath.Glob(root("/usr/local/cuda-*/lib64")); err == nil {
		slices.Sort(found)
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	for _, d := range []string{"/opt/cuda/lib64", "/usr/lib/" + triplet, "/usr/lib64", "/usr/lib", "/usr/local/lib"} {
		dirs = append(dirs, root(d))
	}
	return dirs
}

// rootDir is put before the absolute folders; tests set it.
var rootDir = ""

func root(dir string) string { return filepath.Join(rootDir, dir) }

// sitePackages returns the folders of wheels: the active environment's, the user's, the system's.
func sitePackages() []string {
	var patterns []string
	for _, v := range []string{envknob.Venv.Name, "VIRTUAL_ENV", "CONDA_PREFIX"} {
		if d := os.Getenv(v); d != "" {
			patterns = append(patterns, filepath.Join(d, "lib", "python3*", "site-packages"))
		}
	}
	for _, prefix := range pythons() {
		patterns = append(patterns, filepath.Join(prefix, "lib", "python3*", "site-packages"), filepath.Join(prefix, "lib64", "python3*", "site-packages"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		patterns = append(patterns, filepath.Join(home, ".local", "lib", "python3*", "site-packages"))
	}
	patterns = append(patterns, root("/usr/local/lib/python3*/dist-packages"), root("/usr/lib/python3*/dist-packages"))
	var dirs []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			continue
		}
		slices.Sort(found)
		dirs = append(dirs, found...)
	}
	return dirs
}

package libs

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// pythons returns where the python3 on PATH has its packages, without running it. In an environment
// python3 is a link to the interpreter that made it; both count, because an environment may use the
// packages of the other.
func pythons() []string {
	file, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil
	}
	prefixes := []string{filepath.Dir(filepath.Dir(file))}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		if p := filepath.Dir(filepath.Dir(real)); p != prefixes[0] {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// NCCL's version string in the library, such as "NCCL version 2.21.5+cuda12.4".
var ncclVersion = regexp.MustCompile(`NCCL version [^+\x00]{1,40}\+cuda([0-9]+)\.`)

// ncclCUDA returns the major version of CUDA that an NCCL was built for, or 0. Neither its name nor
// any of its calls tells the version, so ncclCUDA searches for it among the constants, a small part
// of the file.
func ncclCUDA(file string) int {
	f, err := elf.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	s := f.Section(".rodata")
	if s == nil {
		return 0
	}
	b, err := s.Data()
	if err != nil {
		return 0
	}
	m := ncclVersion.FindSubmatch(b)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return n
}

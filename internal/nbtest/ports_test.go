package nbtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// For any setting there are ports to choose from, and they avoid the ports that the system assigns
// if enough others are left.
func TestPortsBeside(t *testing.T) {
	for _, c := range []struct{ first, last, from, to int }{
		{32768, 60999, 10000, 32768}, // Linux's default
		{49152, 65535, 10000, 49152}, // IANA's recommendation
		{12000, 65535, 10000, 12000},
		{11999, 65535, 2048, 11999},
		{9000, 65000, 2048, 9000},
		{4048, 65535, 2048, 4048},
		{4047, 60999, 61000, 65536},
		{1024, 63535, 63536, 65536},
		{1024, 5000, 10000, 65536}, // the default of older systems
		{1024, 63536, 10000, 65536},
		{1024, 65535, 10000, 65536}, // the system assigns nearly all ports
		{1, 65535, 10000, 65536},
	} {
		if from, to := portsBeside(c.first, c.last); from != c.from || to != c.to {
			t.Errorf("with the system's ports %d to %d: [%d, %d), want [%d, %d)", c.first, c.last, from, to, c.from, c.to)
		}
	}
	for first := 1; first < 65536; first += 131 {
		for last := first; last < 65536; last += 257 {
			from, to := portsBeside(first, last)
			among := from <= last && first < to
			if from < 1024 || to > 65536 || to-from < 2000 || among && (first >= 2048+2000 || last < 65536-2000) {
				t.Fatalf("with the system's ports %d to %d: [%d, %d)", first, last, from, to)
			}
		}
	}
}

// The ports of a server and of kernels avoid the ports that the system assigns here, and no
// kernel's port is given twice.
func TestPortsAreNotTheSystems(t *testing.T) {
	from, to := portsBeside(systemPorts())
	port, err := FreePort()
	if n, _ := strconv.Atoi(port); err != nil || n < from || n >= to {
		t.Errorf("FreePort gives %q, %v; it chooses from [%d, %d)", port, err, from, to)
	}
	env := Setup(t)
	c := exec.Command(env.Python, "-c", `
import ports
from jupyter_client.connect import LocalPortCache
settings = [ports.system()] + [(first, last) for first in range(1, 65536, 997) for last in range(first, 65536, 997)]
print(*(f"{first},{last},{start},{end}" for first, last in settings for start, end in [ports.beside(first, last)]))
cache = LocalPortCache.instance()
print(*(cache.find_available_port("127.0.0.1") for _ in range(50)))`)
	c.Dir = filepath.Join(env.Root, "internal", "nbtest")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	settings, given, _ := strings.Cut(string(out), "\n")
	for i, line := range strings.Fields(settings) {
		var first, last, start, end int
		if _, err := fmt.Sscanf(line, "%d,%d,%d,%d", &first, &last, &start, &end); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		a, b := portsBeside(first, last)
		if f, l := systemPorts(); start != a || end != b || i == 0 && (first != f || last != l) {
			t.Errorf("with the system's ports %d to %d, Python chooses from [%d, %d), Go from [%d, %d)", first, last, start, end, a, b)
		}
	}
	seen := map[string]bool{}
	for _, p := range strings.Fields(given) {
		if n, err := strconv.Atoi(p); err != nil || n < from || n >= to || seen[p] {
			t.Errorf("a kernel's port is %q: it was given twice, or is outside of [%d, %d)", p, from, to)
		}
		seen[p] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d ports: %s", len(seen), given)
	}
}

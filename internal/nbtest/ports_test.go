package nbtest

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What the system gives to who asks for any port is never a kernel's or a server's.
func TestPortsAreNotTheSystems(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	given := l.Addr().(*net.TCPAddr).Port
	port, err := FreePort()
	if n, _ := strconv.Atoi(port); err != nil || n < 1024 || n >= given {
		t.Errorf("FreePort gives %q, %v; the system gave %d", port, err, given)
	}
	env := Setup(t)
	c := exec.Command(env.Python, "-c", `
import ports
from jupyter_client.connect import LocalPortCache
cache = LocalPortCache.instance()
print(*(cache.find_available_port("127.0.0.1") for _ in range(50)))`)
	c.Dir = filepath.Join(env.Root, "internal", "nbtest")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := map[string]bool{}
	for _, p := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(p); err != nil || n < 1024 || n >= given || seen[p] {
			t.Errorf("a kernel's port is %q, given twice or by the system, whose last was %d", p, given)
		}
		seen[p] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d ports: %s", len(seen), out)
	}
}

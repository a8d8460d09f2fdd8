package clustertest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// TestMain lets a test start this binary on a host: "listen ADDR" counts the bytes of one
// connection and answers with the count, "send ADDR" sends 10 MB there and waits for the answer,
// "echo ADDR" and "ping ADDR" are described in link_test.go.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		do := map[string]func(string) error{"echo": echo, "ping": ping}[os.Args[1]]
		if do == nil {
			do = func(addr string) error { return talk(os.Args[1], addr) }
		}
		if err := do(os.Args[2]); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func talk(verb, addr string) error {
	if verb == "send" {
		c, err := net.DialTimeout("tcp", addr, 2*time.Second)
		if err != nil {
			return err
		}
		start := time.Now()
		if _, err := c.Write(make([]byte, 10e6)); err != nil {
			return err
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		if _, err := io.Copy(os.Stdout, c); err != nil {
			return err
		}
		println("in", time.Since(start).String())
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	os.Stdout.WriteString("listening\n")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, c)
		if err != nil {
			return err
		}
		_, _ = io.WriteString(c, "got "+itoa(int(n)))
		_ = c.Close()
	}
}

// listen starts this binary's "listen" or "echo" on a host and returns its address.
func listen(t *testing.T, h *Host, verb string) (addr string) {
	t.Helper()
	addr = h.Addr + ":7777"
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := h.Command(exe, verb, addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return addr
}

func send(t *testing.T, h *Host, addr string) (string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Command(exe, "send", addr).CombinedOutput()
	return string(out), err
}

// Two hosts have their own names and addresses, the bytes between them are counted, and a cut cable
// stops all traffic.
func TestHosts(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	t.Parallel()
	start := time.Now()
	w := Hosts(t, 2)
	t.Logf("up in %v", time.Since(start))
	a, b := w.Hosts[0], w.Hosts[1]
	out, err := b.Command("hostname").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "host2" {
		t.Errorf("host 2's name is %q, %v", out, err)
	}
	addr := listen(t, b, "listen")
	text, err := send(t, a, addr)
	if err != nil || !strings.HasPrefix(text, "got 10000000") {
		t.Fatalf("sending 10 MB gave %v: %s", err, text)
	}
	t.Logf("10 MB %s", text)
	if sent, _ := a.Counters(); sent < 10e6 {
		t.Errorf("host 1 has sent %d bytes", sent)
	}
	if _, received := b.Counters(); received < 10e6 {
		t.Errorf("host 2 has received %d bytes", received)
	}
	a.Cut()
	if text, err := send(t, a, addr); err == nil {
		t.Errorf("10 MB pass through a cut cable: %s", text)
	}
	a.Join()
	if text, err := send(t, a, addr); err != nil {
		t.Errorf("after the cable was reconnected, sending failed: %v: %s", err, text)
	}
}

// mpirun runs ranks on both hosts, and their data travels over the network.
func TestMPIOnHosts(t *testing.T) {
	testneed.NotShort(t, "it compiles a program for two libraries")
	t.Parallel()
	for name, get := range map[string]func(testing.TB) *MPI{"OpenMPI": OpenMPI, "MPICH": MPICH} {
		t.Run(name, func(t *testing.T) {
			m := get(t)
			w := Hosts(t, 2)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "big.c"), []byte(big), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := exec.LookPath("gcc"); err != nil {
				t.Skip("needs a C compiler")
			}
			exe := filepath.Join(dir, "big")
			if out, err := m.Command("mpicc", "-o", exe, exe+".c").CombinedOutput(); err != nil {
				t.Fatalf("mpicc: %v: %s", err, out)
			}
			out, err := m.RunOn(w, 2, exe).CombinedOutput()
			for _, want := range []string{"0 host1\n", "1 host1\n", "2 host2\n", "3 host2\n"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("mpirun: %v, %q lacks %q", err, out, want)
				}
			}
			for _, h := range w.Hosts {
				if sent, received := h.Counters(); sent < 4e6 || received < 4e6 {
					t.Errorf("%s has sent %d bytes and received %d; a sum of 4 MB sends at least 4 MB each way", h.Name, sent, received)
				}
			}
		})
	}
}

// MPI_Finalize of Debian's MPICH hangs about once in three times over UCX's TCP, so the rank exits
// after a second.
const big = `#include <mpi.h>
#include <stdio.h>
#include <signal.h>
#include <unistd.h>
static float x[1000000], y[1000000];
void leave(int signal) { _exit(0); }
int main(int argc, char **argv) {
  int rank;
  char name[65];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(x, y, 1000000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  gethostname(name, 65);
  printf("%d %s\n", rank, name);
  fflush(stdout);
  signal(SIGALRM, leave);
  alarm(1);
  MPI_Finalize();
}
`

package clustertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Network is a set of hosts: network namespaces of this machine, each with a host name and an address of its own,
// joined by a switch at 1 Gbit/s per host and direction. The hosts share this machine's files and processors, but each
// has its own files in [Network.Disk].
type Network struct {
	Hosts  []*Host
	Dir    string // scratch, removed at the test's end
	router string // the pid of the process in the switch's namespace
	t      testing.TB

	forwarder *forwarder // of HostsOver, else nil
}

// Host is one host of a [Network].
type Host struct {
	Name   string // "host1", "host2" and so on
	Addr   string // "10.77.0.1", …: in /etc/hosts of no machine
	pid    string
	net    *Network
	number int
}

// hostsScript creates the namespaces. It runs as the root of its own user namespace. Each host is a
// process that ends when its standard input, which is the test's, ends. If $3 is empty, a switch
// connects the hosts.
const hostsScript = `
set -e
n=$1
exec 3<&0
ip link set lo up
[ -n "$3" ] || { ip link add br0 type bridge; ip link set br0 up; }
i=1
while [ $i -le $n ]; do
  mkdir -p "$2/disk" "$2/disk$i"
  unshare -n -u -m sh -c 'mount --bind "$1" "$2" && hostname host'$i' && ip link set lo up && echo ready && cat' sh "$2/disk$i" "$2/disk" <&3 >"$2/host$i" 2>&1 &
  pid=$!
  while ! grep -q ready "$2/host$i"; do kill -0 $pid; sleep 0.01; done
  if [ -z "$3" ]; then
    ip link add v$i type veth peer name eth0 netns $pid
    ip link set v$i master br0 up
    nsenter -t $pid -n sh -c "ip addr add 10.77.0.$i/24 dev eth0; ip link set eth0 up; tc qdisc add dev eth0 root tbf rate 1gbit burst 256kb latency 50ms"
    tc qdisc add dev v$i root tbf rate 1gbit burst 256kb latency 50ms
  fi
  echo $pid
  i=$((i+1))
done
echo done $$
exec cat <&3
`

// Hosts makes n hosts, or skips the test. At the test's end everything that runs in them ends.
func Hosts(t testing.TB, n int) *Network {
	t.Helper()
	if !testneed.Hosts.Here() {
		testneed.Skip(t, testneed.Hosts, "unshare -Urnm, ip or tc does not work here")
	}
	return newNetwork(t, n, "")
}

func newNetwork(t testing.TB, n int, unjoined string) *Network {
	t.Helper()
	dir, err := os.MkdirTemp("", "hosts") //nolint:usetesting // mpirun makes sockets, whose paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keep(t, dir))
	cmd := exec.Command("unshare", "-Urnmu", "--kill-child", "sh", "-c", hostsScript, "hosts", itoa(n), dir, unjoined)
	cmd.Env = append(os.Environ(), marker+"="+dir)
	in, out, problems := converse(t, cmd)
	w := &Network{Dir: dir, t: t}
	lines := bufio.NewScanner(out)
	for w.router == "" && lines.Scan() {
		if pid, ok := strings.CutPrefix(lines.Text(), "done "); ok {
			w.router = pid
			break
		}
		i := len(w.Hosts) + 1
		w.Hosts = append(w.Hosts, &Host{Name: "host" + itoa(i), Addr: "10.77.0." + itoa(i), pid: lines.Text(), net: w, number: i})
	}
	if w.router == "" {
		_ = in.Close()
		_ = cmd.Wait()
		t.Fatalf("the hosts cannot be made: %s", problems.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return w
}

// Disk is a directory in which each host sees its own files: those of its [Host.Disk].
func (w *Network) Disk() string { return filepath.Join(w.Dir, "disk") }

// Disk is the directory, outside of the hosts, whose files the host sees in [Network.Disk].
func (h *Host) Disk() string { return filepath.Join(h.net.Dir, "disk"+itoa(h.number)) }

// enter returns a command in a process's namespaces. The command's process is the program's: killing it kills the program.
func (w *Network) enter(pid string, args []string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", pid, "-U", "-n", "-u", "-m", "--preserve-credentials", "--"}, args...)...)
	cmd.Env = append(os.Environ(), marker+"="+w.Dir)
	return cmd
}

// Command returns a command that runs on the host.
func (h *Host) Command(program string, args ...string) *exec.Cmd {
	return h.net.enter(h.pid, append([]string{program}, args...))
}

// Counters returns the bytes that the host's interface has sent and received.
func (h *Host) Counters() (sent, received int64) {
	h.net.t.Helper()
	out, err := h.Command("cat", "/proc/net/dev").Output()
	if err != nil {
		h.net.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		if (name == "eth0" || name == "tun0") && len(f) > 8 {
			r, _ := strconv.ParseInt(f[0], 10, 64)
			s, _ := strconv.ParseInt(f[8], 10, 64)
			received += r
			sent += s
		}
	}
	return sent, received
}

// Cut cuts the host's cable: from then on packets vanish in both directions, and no connection ends.
func (h *Host) Cut() {
	h.net.t.Helper()
	if h.net.forwarder != nil {
		h.net.forwarder.ask(h.net.t, "cut %d", h.number)
		return
	}
	h.net.switchDo("ip", "link", "set", "v"+itoa(h.number), "nomaster")
}

// Join mends the cable that [Host.Cut] has cut.
func (h *Host) Join() {
	h.net.t.Helper()
	if h.net.forwarder != nil {
		h.net.forwarder.ask(h.net.t, "join %d", h.number)
		return
	}
	h.net.switchDo("ip", "link", "set", "v"+itoa(h.number), "master", "br0")
}

func (w *Network) switchDo(args ...string) {
	w.t.Helper()
	if out, err := w.enter(w.router, args).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Remote writes a program with ssh's arguments (HOST COMMAND…, with options before them ignored) that runs a command on
// a host of the network, and returns its path: what mpirun starts its daemons with. It must itself run on a host.
func (w *Network) Remote() string {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("#!/bin/sh\nwhile :; do case $1 in -*) shift ;; *) break ;; esac; done\nhost=$1; shift\ncase $host in\n")
	for _, h := range w.Hosts {
		fmt.Fprintf(&b, "%s|%s) pid=%s ;;\n", h.Name, h.Addr, h.pid)
	}
	b.WriteString("*) echo \"there is no host $host\" >&2; exit 255 ;;\nesac\nexec nsenter -t $pid -n -u -m -- /bin/sh -c \"$*\"\n")
	path := filepath.Join(w.Dir, "remote")
	if err := os.WriteFile(path, []byte(b.String()), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// RunOn returns the command that runs a program as perHost ranks on every host of a network, started on the first host.
// The ranks of different hosts talk over the network, never through shared memory.
func (m *MPI) RunOn(w *Network, perHost int, program string, args ...string) *exec.Cmd {
	w.t.Helper()
	var names []string
	for _, h := range w.Hosts {
		names = append(names, h.Addr+":"+itoa(perHost))
	}
	n := itoa(perHost * len(w.Hosts))
	device := "eth0"
	if w.forwarder != nil {
		device = "tun0"
	}
	run := m.apart(device, "10.77.0.0/24")
	if m.Name == "MPICH" {
		run = append(run, "-launcher", "ssh", "-launcher-exec", w.Remote(), "-hosts", strings.Join(names, ","), "-np", n)
	} else {
		run = append(run, "--mca", "plm_rsh_agent", w.Remote(), "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--host", strings.Join(names, ","), "-np", n)
	}
	cmd := w.Hosts[0].Command(filepath.Join(m.Bin, "mpirun"), append(append(run, program), args...)...)
	cmd.Env = append(m.Env(), marker+"="+w.Dir)
	return cmd
}

// apart returns the options of mpirun with which ranks exchange data over a network interface only, never through
// shared memory. network is the interface's name or its addresses.
func (m *MPI) apart(device, network string) []string {
	if m.Name == "MPICH" {
		return []string{"-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "tcp", "-genv", "UCX_NET_DEVICES", device} // with "self" too, sums of 4 MB hang
	}
	return []string{"--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", network}
}

package clustertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A test binary with envForward set is the forwarder of [HostsOver], whatever its tests are.
func init() {
	text := os.Getenv(envForward)
	if text == "" {
		return
	}
	if err := forward([]byte(text)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The sizes of the forwarder.
const (
	tunMTU   = 9000
	maxQueue = 50 * time.Millisecond // of packets that wait for a host's turn
	maxWait  = 1 << 14               // packets on their way to a host
)

// forward passes packets between the hosts until its standard input ends.
func forward(text []byte) error {
	var f forwarding
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	s := &relay{link: f.Link}
	for i, pid := range f.PIDs {
		dev, err := openTun(pid, fmt.Sprintf("10.77.0.%d/24", i+1))
		if err != nil {
			return fmt.Errorf("host %d: %w", i+1, err)
		}
		s.hosts = append(s.hosts, &port{dev: dev, random: rand.New(rand.NewPCG(f.Seed, uint64(i))), queue: make(chan packet, maxWait)})
	}
	for _, h := range s.hosts {
		go s.read(h)
		go s.write(h)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb string
		var host int
		_, _ = fmt.Sscan(lines.Text(), &verb, &host) // "traffic" has no host
		answer, err := json.Marshal(s.do(verb, host))
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", answer)
	}
	return nil
}

// openTun makes the device tun0 in the network namespace of a process. The device lives as long as the file.
func openTun(pid, addr string) (*os.File, error) {
	var dev *os.File
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread stays in the namespace, and ends
		failed <- func() error {
			ns, err := os.Open("/proc/" + pid + "/ns/net")
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("entering its network namespace: %w", err)
			}
			fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err != nil {
				return fmt.Errorf("opening /dev/net/tun: %w", err)
			}
			ifr, err := unix.NewIfreq("tun0")
			if err != nil {
				return err
			}
			ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
				return fmt.Errorf("making the device tun0: %w", err)
			}
			dev = os.NewFile(uintptr(fd), "tun0")
			out, err := exec.Command("sh", "-ec", fmt.Sprintf( // its namespace is this thread's
				"ip link set tun0 mtu %d txqueuelen 1000; ip addr add %s dev tun0; ip link set tun0 addrgenmode none up", tunMTU, addr)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("configuring the device tun0: %w: %s", err, out)
			}
			return nil
		}()
	}()
	return dev, <-failed
}

// relay is the forwarder's state.
type relay struct {
	link  Link
	hosts []*port

	mu    sync.Mutex // of everything below, and of the ports' times
	total Traffic
}

// port is a host at the relay.
type port struct {
	dev    *os.File
	random *rand.Rand
	queue  chan packet // packets for the host, by time
	// sent and got are when the host's last packet has left and arrived, at the link's rate.
	sent, got time.Time
	cut       bool
}

type packet struct {
	due  time.Time
	data []byte
}

func (s *relay) read(from *port) {
	buf := make([]byte, tunMTU)
	for {
		n, err := from.dev.Read(buf)
		if err != nil {
			return // the host has ended
		}
		if n < 20 || buf[0]>>4 != 4 || [3]byte(buf[16:]) != [3]byte{10, 77, 0} {
			continue // no packet of IPv4 to a host, but one to a group
		}
		if to := int(buf[19]) - 1; to >= 0 && to < len(s.hosts) {
			s.pass(from, s.hosts[to], buf[:n])
		}
	}
}

// pass puts a packet into the queue of its destination, unless it is lost.
func (s *relay) pass(from, to *port, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from.cut || to.cut:
		s.total.Cut++
		return
	case from.random.Float64() < s.link.Loss:
		s.total.Lost++
		return
	}
	now := time.Now()
	left := now
	if s.link.Rate > 0 {
		takes := time.Duration(float64(8*len(data)) / s.link.Rate * float64(time.Second))
		sent := latest(now, from.sent).Add(takes)
		left = latest(sent, to.got.Add(takes)) // both at once: the first bit arrives when it is sent
		if left.Sub(now) > maxQueue {
			s.total.Overflowed++
			return
		}
		from.sent, to.got = sent, left
	}
	select {
	case to.queue <- packet{left.Add(s.link.Delay), append([]byte(nil), data...)}:
		s.total.Delivered++
		s.total.Bytes += int64(len(data))
	default:
		s.total.Overflowed++
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *relay) write(to *port) {
	for p := range to.queue {
		time.Sleep(time.Until(p.due))
		if _, err := to.dev.Write(p.data); err != nil {
			return // the host has ended
		}
	}
}

// do obeys a line of the test.
func (s *relay) do(verb string, host int) Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if host > 0 && host <= len(s.hosts) {
		s.hosts[host-1].cut = verb == "cut"
	}
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // its arguments are right
	s.total.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return s.total
}

package clustertest

import (
	"bufio"
	"encoding/binary"
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
		dev, err := openTun(pid, fmt.Sprintf("10.77.0.%d/24", i+1), f.Loss == 0)
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

// offloads are the packets that a device passes on as one, with a checksum that is still to be made: those of TCP.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4

// openTun makes the device tun0 in the network namespace of a process. The device lives as long as the file. If whole is set,
// packets of TCP come and go several at a time, as from and to a network card that divides and joins them, which takes a
// fraction of the processor time.
func openTun(pid, addr string, whole bool) (*os.File, error) {
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
			ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
			if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
				return fmt.Errorf("making the device tun0: %w", err)
			}
			if whole {
				if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads); err != nil {
					return fmt.Errorf("letting the device tun0 pass several packets at a time: %w", err)
				}
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
	// Memory of packets that have arrived: else most of the forwarder's processor time goes into new memory.
	spares sync.Pool

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
	buf := make([]byte, tunHead+1<<16)
	for {
		n, err := from.dev.Read(buf)
		if err != nil {
			return // the host has ended
		}
		ip := buf[tunHead:]
		if n < tunHead+20 || ip[0]>>4 != 4 || [3]byte(ip[16:]) != [3]byte{10, 77, 0} {
			continue // no packet of IPv4 to a host, but one to a group
		}
		if to := int(ip[19]) - 1; to >= 0 && to < len(s.hosts) {
			s.pass(from, s.hosts[to], buf[:n])
		}
	}
}

// tunHead is the length of the virtio_net_hdr before what a device passes on. Its words say how it is to be divided.
const tunHead = 10

// onWire is the number of bytes of what a device passes on, with the headers that each packet has when it is divided.
func onWire(data []byte) int {
	n := len(data) - tunHead
	heads, size := int(binary.NativeEndian.Uint16(data[2:])), int(binary.NativeEndian.Uint16(data[4:]))
	if data[1] == 0 || size == 0 { // one packet
		return n
	}
	packets := (n - heads + size - 1) / size
	return n + (packets-1)*heads
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
	now, size := time.Now(), onWire(data)
	left := now
	if s.link.Rate > 0 {
		takes := time.Duration(float64(8*size) / s.link.Rate * float64(time.Second))
		sent := latest(now, from.sent).Add(takes)
		left = latest(sent, to.got.Add(takes)) // both at once: the first bit arrives when it is sent
		if left.Sub(now) > maxQueue {
			s.total.Overflowed++
			return
		}
		from.sent, to.got = sent, left
	}
	select {
	case to.queue <- packet{left.Add(s.link.Delay), append(s.spare(), data...)}:
		s.total.Delivered++
		s.total.Bytes += int64(size)
	default:
		s.total.Overflowed++
	}
}

// spare returns memory for a packet.
func (s *relay) spare() []byte {
	if p, ok := s.spares.Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return nil
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
		s.spares.Put(&p.data)
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

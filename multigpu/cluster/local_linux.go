package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machineID identifies the machine as the ranks see it: its boot and its network namespace. Ranks
// of one machine can share memory. A host's name does not identify it, because clones have the same
// name.
var machineID = func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + ns
}

// processors returns the processors that this process may use, as the mask of its affinity.
func processors() string {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return ""
	}
	var b strings.Builder
	for i := len(set) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%016x", uint64(set[i]))
	}
	return b.String()
}

// launcherProcess identifies the local process of MPICH's launcher: it holds the other end of a
// socket that its ranks inherit. It is their parent's number if there is no such socket.
func launcherProcess() string {
	if fd, err := strconv.Atoi(os.Getenv("PMI_FD")); err == nil {
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && cred.Pid > 0 {
			return strconv.Itoa(int(cred.Pid))
		}
	}
	return strconv.Itoa(os.Getppid())
}

// listenLocal listens at an abstract name: it exists on this machine only, and ends with this
// process.
func listenLocal(name, network string) (*net.UnixListener, error) {
	return net.ListenUnix(network, &net.UnixAddr{Name: "@" + name, Net: network})
}

// dialLocal connects to an abstract name.
func dialLocal(name, network string) (*net.UnixConn, error) {
	c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: "@" + name, Net: network})
	if err != nil {
		return nil, err
	}
	if err := sameUser(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// sameUser returns an error if another user's process is at the other end.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var bad error
	if err := raw.Control(func(fd uintptr) { cred, bad = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	switch {
	case bad != nil:
		return bad
	case int(cred.Uid) != os.Getuid():
		return &refusal{fmt.Sprintf("the process %d of user %d is at the other end of a socket of user %d", cred.Pid, cred.Uid, os.Getuid())}
	}
	return nil
}

// parcel is a message with open files. Each job of a machine has one for each rank but its first.
type parcel struct {
	Job   int      `json:"job"`
	Names []string `json:"names"`
	files []*os.File
}

// maxParcel bounds the names of a parcel; the kernel passes at most 253 files at once.
const (
	maxParcel = 64 << 10
	maxFiles  = 250
)

func sendParcel(c *net.UnixConn, p parcel) error {
	if len(p.files) > maxFiles {
		return fmt.Errorf("cluster: %d files for a run; at most %d can be passed", len(p.files), maxFiles)
	}
	var fds []int
	for _, f := range p.files {
		p.Names = append(p.Names, f.Name())
		fds = append(fds, int(f.Fd()))
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if len(text) > maxParcel {
		return fmt.Errorf("cluster: the names of a run's files have %d bytes; at most %d can be passed", len(text), maxParcel)
	}
	if err := c.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix(text, unix.UnixRights(fds...), nil)
	return err
}

func receiveParcel(c *net.UnixConn) (parcel, error) {
	text, oob := make([]byte, maxParcel), make([]byte, unix.CmsgSpace(4*(maxFiles+3)))
	n, oobn, flags, _, err := c.ReadMsgUnix(text, oob)
	if err != nil {
		return parcel{}, err
	}
	var fds []int
	controls, err := unix.ParseSocketControlMessage(oob[:oobn])
	for i := 0; err == nil && i < len(controls); i++ {
		var more []int
		more, err = unix.ParseUnixRights(&controls[i])
		fds = append(fds, more...)
	}
	var p parcel
	if err == nil {
		err = json.Unmarshal(text[:n], &p)
	}
	if err == nil && (flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 || len(fds) != len(p.Names)) {
		err = fmt.Errorf("cluster: %d open files have come of %d; the limit of open files (ulimit -n) may be too low", len(fds), len(p.Names))
	}
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		if err == nil {
			p.files = append(p.files, os.NewFile(uintptr(fd), p.Names[i]))
		} else {
			_ = unix.Close(fd) // not passed on
		}
	}
	return p, err
}

// memoryFile returns an empty file in memory.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate("gnb-copy", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cluster: making a file in memory (memfd_create): %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// meet connects the first rank of a machine with its others, which listen and dial at the first
// rank's local name. The first rank gets their connections by rank; another one gets one
// connection, to the first. It gives up when ctx ends.
func meet(ctx context.Context, l *net.UnixListener, me welcome) (map[int]*net.UnixConn, error) {
	first, count := me.machine()
	defer l.Close()
	if count == 1 {
		return nil, nil
	}
	if me.Rank != first {
		c, err := dialLocal(me.Members[first].Local, "unixpacket")
		if err != nil {
			return nil, fmt.Errorf("cluster: %s cannot reach %s on the same machine: %w", me.name(me.Rank), me.name(first), err)
		}
		if _, err := c.Write(strconv.AppendInt(nil, int64(me.Rank), 10)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return map[int]*net.UnixConn{first: c}, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	out := map[int]*net.UnixConn{}
	for len(out) < count-1 {
		c, err := l.AcceptUnix()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			for _, c := range out {
				_ = c.Close() // there will be no job
			}
			return nil, lost("cluster: %s waits for the other ranks of its machine: %w", me.name(me.Rank), err)
		}
		rank, err := greet(c)
		if err != nil || rank <= first || rank >= first+count || out[rank] != nil {
			_ = c.Close() // not one of ours
			continue
		}
		out[rank] = c
	}
	return out, nil
}

// greet returns the rank at the other end of a connection of [meet].
func greet(c *net.UnixConn) (int, error) {
	if err := sameUser(c); err != nil {
		return 0, err
	}
	if err := c.SetReadDeadline(time.Now().Add(proofPatience)); err != nil {
		return 0, err
	}
	b := make([]byte, 16)
	n, err := c.Read(b)
	if err != nil {
		return 0, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b[:n]))
}

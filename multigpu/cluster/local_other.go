//go:build !linux

package cluster

import (
	"context"
	"errors"
	"net"
	"os"
)

var errLinux = errors.New("cluster: ranks of one machine find each other on Linux only")

// machineID is unknown, so every rank counts as a machine.
var machineID = func() string { return "" }

func processors() string { return "" }

func launcherProcess() string { return "" }

func listenLocal(string, string) (*net.UnixListener, error) { return nil, errLinux }

func dialLocal(string, string) (*net.UnixConn, error) { return nil, errLinux }

func sameUser(*net.UnixConn) error { return errLinux }

func tcpUser(net.Conn) (uid int, ok bool) { return 0, false }

type parcel struct {
	Job   int
	files []*os.File
}

func sendParcel(*net.UnixConn, parcel) error { return errLinux }

func receiveParcel(*net.UnixConn) (parcel, error) { return parcel{}, errLinux }

func memoryFile(string) (*os.File, error) { return nil, errLinux }

func awaitLauncher(*Place, *string) <-chan struct{} { return nil }

func meet(context.Context, *net.UnixListener, welcome) (map[int]*net.UnixConn, error) {
	return nil, errLinux
}

package cli

import (
	"context"
	"fmt"
	"net"
)

// Listen listens at the address of a flag. An address without a host means this machine alone, in every command: other
// machines reach a port only if the user names an address of the network, or 0.0.0.0 for all.
func Listen(ctx context.Context, flag, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, Usagef("--%s %s: it is HOST:PORT, or :PORT for this machine alone (%v)", flag, address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w; choose another port, or stop the process that uses it", flag, address, err)
	}
	return l, nil
}

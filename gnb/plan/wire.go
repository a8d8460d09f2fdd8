package plan

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A request of MeasureNetwork is networkMagic and the number of bytes that both sides then send each other at the same time, at most
// networkMost. The answer begins with the same 16 bytes, and the side that answers ends it with the last of them again when it has
// received all.
const (
	networkMagic = "gnbnet1\n"
	networkMost  = 1 << 28
	// networkTime is the time from which on a transfer is long enough, and networkWait that after which a peer is given up.
	networkTime, networkWait = 150 * time.Millisecond, 20 * time.Second
	networkTrips             = 32
	// networkPeers is the number of machines that are answered at a time.
	networkPeers = 4
)

// AnswerNetwork answers [MeasureNetwork] on other machines until ctx ends, which is no error, and closes l. It sends and discards zeros;
// requests for more than 256 MiB, and anything else, end the connection.
func AnswerNetwork(ctx context.Context, l net.Listener) error {
	var peers sync.WaitGroup
	defer peers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for room := make(chan struct{}, networkPeers); ; {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("plan: waiting for other machines: %w", err)
		}
		peers.Go(func() {
			defer func() { <-room }()
			defer c.Close()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			for answered(c) == nil { // an error ends the connection
			}
		})
	}
}

// answered answers one request.
func answered(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(networkWait)); err != nil {
		return err
	}
	var head [16]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(head[8:])
	if string(head[:8]) != networkMagic || n > networkMost {
		return errors.New("not a request")
	}
	_, err := c.Write(head[:])
	if err == nil && n > 0 {
		if err = bothWays(c, int64(n)); err == nil {
			_, err = c.Write(head[15:])
		}
	}
	return err
}

// bothWays sends n bytes and receives as many at the same time.
func bothWays(c net.Conn, n int64) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c, zeros{}, n)
		sent <- err
	}()
	_, err := io.CopyN(io.Discard, c, n)
	return errors.Join(err, <-sent)
}

// zeros is a reader without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// MeasureNetwork measures the network to a machine that runs [AnswerNetwork], or "gnb bench network", at the address: the time of a
// round trip is the median of 32, and the rate that of a transfer in both directions at once, over one connection, which takes 0.15 s or
// has 256 MiB.
func MeasureNetwork(ctx context.Context, address string) (n Network, err error) {
	defer func() {
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			n, err = Network{}, fmt.Errorf("plan: measuring the network to %s: %w; run gnb bench network there, and name its host and port", address, err)
		}
	}()
	c, err := (&net.Dialer{Timeout: networkWait / 4}).DialContext(ctx, "tcp", address)
	if err != nil {
		return n, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	trips := make([]float64, networkTrips)
	for i := range trips {
		if trips[i], err = asked(c, 0); err != nil {
			return n, err
		}
	}
	slices.Sort(trips)
	n.RoundTrip = trips[len(trips)/2]
	for bytes := int64(1 << 20); ; bytes *= 2 {
		t, err := asked(c, bytes)
		n.BytesPerSecond = float64(bytes) / max(t-n.RoundTrip, 1e-9)
		if err != nil || t >= networkTime.Seconds() || bytes >= networkMost {
			return n, err
		}
	}
}

// asked returns the time of a request.
func asked(c net.Conn, n int64) (seconds float64, err error) {
	if err := c.SetDeadline(time.Now().Add(networkWait)); err != nil {
		return 0, err
	}
	head := binary.LittleEndian.AppendUint64([]byte(networkMagic), uint64(n))
	start := time.Now()
	if _, err := c.Write(head); err != nil {
		return 0, err
	}
	got := make([]byte, len(head))
	if _, err := io.ReadFull(c, got); err != nil {
		return 0, err
	}
	if !slices.Equal(got, head) {
		return 0, errors.New("another program answers there")
	}
	if n > 0 {
		if err = bothWays(c, n); err == nil {
			_, err = io.ReadFull(c, got[:1])
		}
	}
	return time.Since(start).Seconds(), err
}

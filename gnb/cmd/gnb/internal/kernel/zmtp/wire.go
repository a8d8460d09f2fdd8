package zmtp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// Bits of a frame's first byte.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// maxFrames bounds the frames of a message, and maxIdentity the bytes of a peer's identity.
const (
	maxFrames   = 1 << 10
	maxIdentity = 255
	maxCommand  = 1 << 14
)

// errProtocol is wrapped by the errors for bytes that are not ZMTP 3, or exceed a bound.
var errProtocol = errors.New("zmtp: not a message of ZMTP 3")

// greeting is what both sides send first: signature, version 3.0, no security.
var greeting = [64]byte{0: 0xff, 9: 0x7f, 10: 3, 12: 'N', 13: 'U', 14: 'L', 15: 'L'}

// readGreeting reads a peer's greeting and refuses older versions and other security mechanisms.
func readGreeting(r io.Reader) error {
	var g [64]byte
	if _, err := io.ReadFull(r, g[:]); err != nil {
		return err
	}
	if g[0] != 0xff || g[9] != 0x7f || g[10] < 3 || !bytes.Equal(g[12:32], greeting[12:32]) {
		return fmt.Errorf("%w: greeting % x", errProtocol, g[:12])
	}
	return nil
}

// readFrame reads a frame of at most limit bytes. Memory grows with the bytes that arrive, not with
// the length that the peer claims.
func readFrame(r io.Reader, limit int) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	size := uint64(head[1])
	if flags&flagLong != 0 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || size > uint64(limit) {
		return 0, nil, fmt.Errorf("%w: a frame with flags %#x of %d bytes, where %d are allowed", errProtocol, flags, size, limit)
	}
	if size <= 1<<16 {
		body = make([]byte, size)
		_, err = io.ReadFull(r, body)
		return flags, body, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return 0, nil, err
	}
	return flags, b.Bytes(), nil
}

// readMessage reads a message of at most limit bytes, and hands commands, which may come between
// messages, to command.
func readMessage(r io.Reader, limit int, command func(body []byte) error) ([][]byte, error) {
	var frames [][]byte
	for {
		flags, body, err := readFrame(r, limit)
		switch {
		case err != nil:
			return nil, err
		case flags&flagCommand != 0:
			if len(frames) > 0 || flags&flagMore != 0 || len(body) > maxCommand {
				return nil, fmt.Errorf("%w: a command of %d bytes", errProtocol, len(body))
			}
			if err := command(body); err != nil {
				return nil, err
			}
			continue
		}
		frames = append(frames, body)
		limit -= len(body)
		if flags&flagMore == 0 {
			return frames, nil
		}
		if len(frames) == maxFrames {
			return nil, fmt.Errorf("%w: a message of more than %d frames", errProtocol, maxFrames)
		}
	}
}

// frame returns a frame's header and body.
func frame(flags byte, body []byte) net.Buffers {
	head := []byte{flags, byte(len(body))}
	if len(body) > 255 {
		head = binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body)))
	}
	return net.Buffers{head, body}
}

// message returns the frames of a message.
func message(frames [][]byte) net.Buffers {
	var out net.Buffers
	for i, body := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		out = append(out, frame(flags, body)...)
	}
	return out
}

// ready returns the body of the command READY of a socket of this type.
func ready(kind string) []byte {
	body := append([]byte{5}, "READY"...)
	for _, p := range [][2]string{{"Socket-Type", kind}, {"Identity", ""}} {
		body = append(append(body, byte(len(p[0]))), p[0]...)
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(p[1]))), p[1]...)
	}
	return body
}

// readReady returns the properties of a READY command, their names in lower case.
func readReady(body []byte) (map[string]string, error) {
	bad := fmt.Errorf("%w: the command READY", errProtocol)
	rest, ok := bytes.CutPrefix(body, append([]byte{5}, "READY"...))
	if !ok {
		return nil, bad
	}
	properties := map[string]string{}
	for len(rest) > 0 {
		n := int(rest[0])
		if rest = rest[1:]; n == 0 || len(rest) < n+4 {
			return nil, bad
		}
		name := string(bytes.ToLower(rest[:n]))
		size := binary.BigEndian.Uint32(rest[n:])
		if rest = rest[n+4:]; uint64(size) > uint64(len(rest)) {
			return nil, bad
		}
		properties[name] = string(rest[:size])
		rest = rest[size:]
	}
	if len(properties["identity"]) > maxIdentity {
		return nil, bad
	}
	return properties, nil
}

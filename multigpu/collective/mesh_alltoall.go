package collective

// exchange is one AllToAll over machines. Messages within a machine go directly to their rank. The
// first rank collects the messages for other machines, sends each machine one body, and distributes
// the messages that it receives.
type exchange struct {
	c       *mesh
	send    [][]byte
	here    [][]byte   // messages from ranks of this machine to this rank
	leaving [][][]byte // at the first rank: by rank of this machine, for the ranks of others
	bodies  [][]byte   // at the first rank: from machines
	coming  [][][]byte // at the first rank: by rank of this machine, from the ranks of others
}

func (c *mesh) AllToAll(s Site, send [][]byte) ([][]byte, error) {
	if err := checkSend(s, send, c.world); err != nil {
		return nil, err
	}
	x := exchange{c: c, send: send, bodies: make([][]byte, c.machines())}
	if _, err := c.run(s, call{
		op:     opAllToAll,
		local:  func([][]byte) error { return x.collect() },
		body:   func(_ [][]byte, m int) [][]byte { return packed(x.body(m)) },
		take:   c.intoLike(x.bodies),
		result: func([][]byte) ([][]byte, error) { return nil, x.sort(s) },
		finish: x.deal,
	}); err != nil {
		return nil, err
	}
	return append(append(x.coming[0][:c.first[c.me]:c.first[c.me]], x.here...), x.coming[0][c.first[c.me]:]...), nil
}

// others are the messages of all, which are by rank, from or for other machines.
func (x *exchange) others(all [][]byte) [][]byte {
	lo, hi := x.c.first[x.c.me], x.c.first[x.c.me+1]
	return append(all[:lo:lo], all[hi:]...)
}

// collect exchanges within the machine. A message to the first rank is that for itself, then those
// for other machines.
func (x *exchange) collect() error {
	c := x.c
	lo, hi := c.first[c.me], c.first[c.me+1]
	x.leaving = make([][][]byte, hi-lo)
	x.leaving[0] = x.others(x.send)
	if hi-lo == 1 {
		x.here = [][]byte{clone(x.send[lo])}
		return nil
	}
	send := append([][]byte(nil), x.send[lo:hi]...)
	if !c.leads() {
		send[0] = joined(packed(append([][]byte{send[0]}, x.leaving[0]...)))
	}
	var err error
	if x.here, err = c.local.AllToAll(within, send); err != nil || !c.leads() {
		return err
	}
	for r := 1; r < hi-lo; r++ {
		m, err := unpack(x.here[r], 1+c.world-(hi-lo))
		if err != nil {
			return err
		}
		x.here[r], x.leaving[r] = m[0], m[1:]
	}
	return nil
}

// body holds the messages for machine m: by their sender, then by their receiver.
func (x *exchange) body(m int) (messages [][]byte) {
	lo := x.c.first[m]
	if m > x.c.me {
		lo -= x.c.count(x.c.me)
	}
	for _, l := range x.leaving {
		messages = append(messages, l[lo:lo+x.c.count(m)]...)
	}
	return messages
}

// sort orders what machines sent by receiver.
func (x *exchange) sort(s Site) error {
	n := x.c.count(x.c.me)
	x.coming = make([][][]byte, n)
	for m, b := range x.bodies {
		if m == x.c.me {
			continue
		}
		messages, err := unpack(b, x.c.count(m)*n)
		if err != nil {
			return x.c.malformed(s, m, err)
		}
		for i, message := range messages {
			x.coming[i%n] = append(x.coming[i%n], message)
		}
	}
	return nil
}

// deal gives the ranks of the machine what came for them.
func (x *exchange) deal() error {
	c := x.c
	n := c.count(c.me)
	if n == 1 {
		return nil
	}
	send := make([][]byte, n)
	if c.leads() {
		for r := 1; r < n; r++ {
			send[r] = joined(packed(x.coming[r]))
		}
	}
	got, err := c.local.AllToAll(within, send)
	if err != nil || c.leads() {
		return err
	}
	x.coming = make([][][]byte, 1)
	x.coming[0], err = unpack(got[0], c.world-n)
	return err
}

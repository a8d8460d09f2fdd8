package plan

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Network is what joins the machines of a run. The zero value is an unknown network.
type Network struct {
	// BytesPerSecond is the rate at which a machine sends to all others, and that at which it receives, both at once.
	BytesPerSecond float64 `json:"bytes_per_second"`
	// RoundTrip is the time, in seconds, from a short message to its answer.
	RoundTrip float64 `json:"round_trip_seconds"`
}

var networkForm = regexp.MustCompile(`^\s*([0-9.]+)\s*([kKMGT]?)(bit|B)/s\s*,\s*(\S+)\s*$`)

// ParseNetwork parses a text such as "10Gbit/s,0.1ms": the rate of a machine's network in bits (Gbit/s, Mbit/s) or bytes
// (GB/s, MB/s) of powers of ten, and the time of a round trip.
func ParseNetwork(text string) (n Network, err error) {
	if m := networkForm.FindStringSubmatch(text); m != nil {
		x, rateErr := strconv.ParseFloat(m[1], 64)
		trip, tripErr := time.ParseDuration(m[4])
		scale := map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[m[2]]
		if m[3] == "bit" {
			scale /= 8
		}
		n = Network{x * scale, trip.Seconds()}
		if rateErr == nil && tripErr == nil && n.BytesPerSecond >= 1 && n.BytesPerSecond <= 1e15 && trip >= 0 {
			return n, nil
		}
	}
	return Network{}, fmt.Errorf("plan: the network %q is not known; say its rate and the time of a round trip, such as 10Gbit/s,0.1ms", text)
}

type networkKey struct{}

// Over returns a context in which gnb.Plan plans a run whose machines are joined by the network n. They are those of
// gnb.TrainOptions.Cluster; a run on one machine needs no network.
func Over(ctx context.Context, n Network) context.Context {
	return context.WithValue(ctx, networkKey{}, n)
}

// machines is the number of machines of a job, which have as many workers each.
func (j *Job) machines() int { return (j.Workers + j.here() - 1) / j.here() }

// machineOf is the machine that has a rank.
func (j *Job) machineOf(rank int) int { return rank / j.here() }

// firsts are the first ranks of the machines.
func (j *Job) firsts() (first []int) {
	for r := 0; r < j.Workers; r += j.here() {
		first = append(first, r)
	}
	return first
}

// traffic is what a machine sends to others in a step, and receives: about as much.
type traffic struct {
	ahead  int64 // bytes of rows and edges, which are asked for before the step
	rounds int   // messages, one after the other, by which it asks for them
	within int64 // bytes that the step itself waits for: sums of gradients, and learned rows
	waits  int   // rounds of these
}

// traffic returns what a step moves between machines.
func (j *Job) traffic(l *load, tried *Trial) (t traffic) {
	if j.machines() < 2 {
		return t
	}
	here, v := float64(j.here()), float64(j.Virtual)
	if l.remote > 0 && j.Embedding == 0 {
		rows := j.asked(l, tried)
		if w := j.Workers; !j.far() { // other machines have their share of what others have
			rows *= float64(w-j.here()) / float64(max(1, w-1))
		}
		t.ahead += int64(here * rows * float64(rowBytes(j.Data)+4))
		t.rounds += j.Virtual
	}
	if j.Divided {
		for _, h := range l.hops {
			t.ahead += int64(here*v) * h.far
			t.rounds += 2 * j.Virtual
		}
	}
	reduce := collective.ReduceBytes(l.params, j.Virtual, j.Workers, j.firsts())
	t.within, t.waits = reduce[0]+reduce[1], 1
	if reduce[1] > 0 {
		t.waits = 2
	}
	if j.Embedding > 0 { // ids and rows before the pass; ids and gradients after it, and a barrier
		away := here * l.inputs * v * (1 - here/float64(j.Workers))
		t.within += int64(away * 8 * float64(j.Embedding+1))
		t.waits += 4
	}
	return t
}

// aheadSeconds is the time that rows and edges of other machines take for a step.
func (n Network) aheadSeconds(t traffic) float64 { return n.seconds(t.ahead, t.rounds) }

// withinSeconds is the time of the messages that a step waits for.
func (n Network) withinSeconds(t traffic) float64 { return n.seconds(t.within, t.waits) }

// seconds is the time of rounds of messages with these bytes in all. A round takes half of a round trip.
func (n Network) seconds(bytes int64, rounds int) float64 {
	if n.BytesPerSecond == 0 {
		return 0
	}
	return float64(bytes)/n.BytesPerSecond + float64(rounds)*n.RoundTrip/2
}

// networkNote says what bounds a step on several machines; "" on one.
func (j *Job) networkNote(l *load, tried *Trial) string {
	switch {
	case j.machines() < 2:
		return ""
	case j.network.BytesPerSecond == 0:
		return fmt.Sprintf("The time of the network between %d machines is not part of these times, because it is not known; state it: --network 10Gbit/s,0.1ms, in a program plan.Over.", j.machines())
	case tried == nil:
		return ""
	}
	t, bound := j.traffic(l, tried), "computing takes longer"
	computing, ahead, within := tried.StepSeconds, j.aheadSeconds(t, tried), j.network.withinSeconds(t)
	if ahead > computing {
		bound = "the network takes longer"
	}
	note := ""
	if t.rounds > 0 {
		note = fmt.Sprintf("At the same time, a machine computes for %s ms of a step and waits for %s ms for rows and edges of other machines (%s): %s. ", ms(computing), ms(ahead), phrase.Bytes(t.ahead), bound)
	}
	note += fmt.Sprintf("For %s ms of a step it waits for the sum of gradients", ms(within))
	if j.Embedding > 0 {
		note += " and for learned rows"
	}
	note += fmt.Sprintf(" (%s).", phrase.Bytes(t.within))
	if j.Cooperative {
		note += " The time in which the rows between the layers of a cooperative batch pass from machine to machine is not known."
	}
	return note
}

// String is the network as [ParseNetwork] reads it.
func (n Network) String() string {
	return fmt.Sprintf("%sMbit/s,%sms", decimal(8*n.BytesPerSecond/1e6), decimal(1e3*n.RoundTrip))
}

// decimal writes x to four digits, without an exponent.
func decimal(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64) // what FormatFloat writes is a number
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

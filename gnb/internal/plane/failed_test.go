//go:build linux

package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// broken is the Own of a rank that cannot read the row of one node.
type broken struct {
	held
	node int32
}

func (o broken) Gather(dst []byte, ids []int32) error {
	if slices.Contains(ids, o.node) {
		return errors.New("the disk is broken")
	}
	return o.held.Gather(dst, ids)
}

// A rank that cannot ask for the rows of a batch, or cannot answer, ends the windows of all ranks with an error that names
// it: those whose program leaves the loop before that batch, and those whose program needs it.
func TestOneRankFails(t *testing.T) {
	const world, batches, at = 3, 40, 5
	node := int32(0) // of rank 1
	for owner(node, world) != 1 {
		node++
	}
	for _, known := range []int{0, 3} { // 3: with a cache of Belady's policy
		for _, inline := range []bool{false, true} {
			for _, until := range []int{0, 2, batches} {
				for fault, want := range map[string]string{"ask": "are on no other rank", "answer": "the disk is broken"} {
					t.Run(fmt.Sprintf("%s, inline %v, %d known, loop left after %d", fault, inline, known, until), func(t *testing.T) {
						var mu sync.Mutex
						reported := map[int]error{}
						failed := make(chan struct{})
						failing := map[string]int{"ask": 0, "answer": 1}[fault]
						ended := sync.WaitGroup{} // a rank that ends aborts the others
						ended.Add(world)
						for r, err := range ranks(t, world, func(c collective.Comm) error {
							late := time.AfterFunc(time.Minute, func() { c.Abort("ranks wait for each other") })
							defer late.Stop()
							x := exchange(c)
							if x.Own = (broken{held{c.Rank(), world}, node}); fault == "ask" {
								x.Own = held{c.Rank(), world}
								right := x.Owner
								x.Owner = func(v int32) int {
									if v == node {
										return c.Rank()
									}
									return right(v)
								}
							}
							var pool *Pool
							if known > 0 {
								pool = NewPool(&Cache{rowBytes: rowBytes}, nil, 4*rowBytes)
							}
							w := Open(context.Background(), Options{
								Source: x, Own: held{c.Rank(), world}, Pool: pool, Known: known, RowBytes: rowBytes, Bytes: 1 << 20, Batches: batches, Inline: inline, Threads: 1,
								Failed: func(err error) {
									mu.Lock()
									defer mu.Unlock()
									if reported[c.Rank()] = err; len(reported) == world {
										close(failed)
									}
								},
							})
							var need error
							var tickets []*Ticket
							for i := range batches {
								ids := []int32{int32(20 + 3*i + c.Rank())}
								if ids = slices.DeleteFunc(ids, func(v int32) bool { return v == node }); i == at && c.Rank() == 0 {
									ids = append(ids, node)
								}
								ticket, err := w.Ask(ids)
								if err != nil { // the call has failed already
									need = err
									break
								}
								tickets = append(tickets, ticket)
							}
							for _, ticket := range tickets[:min(until, len(tickets))] {
								if err := ticket.Gather(nil, make([]byte, len(ticket.ids)*rowBytes)); err != nil {
									need = err
									break
								}
							}
							<-failed
							w.Close()
							w.Wait()
							ended.Done()
							ended.Wait()
							if until == batches && need == nil {
								return errors.New("the loop has all batches")
							}
							return nil
						}) {
							if err != nil {
								t.Errorf("rank %d: %v", r, err)
							}
							name := fmt.Sprintf("rank %d could not %s ", failing, map[string]string{"ask": "ask for", "answer": "give its"}[fault])
							if e := reported[r]; e == nil || !strings.Contains(e.Error(), want) || strings.Contains(e.Error(), name) != (r != failing) {
								t.Errorf("rank %d reports %v", r, e)
							}
						}
					})
				}
			}
		}
	}
}

package kge

import (
	"cmp"
	"slices"
	"sort"
)

// Queries are the distinct queries (head, relation, ?) of triples, ascending by head, then relation,
// each with its answers: the answers of query i are Tails[Indptr[i]:Indptr[i+1]], ascending and without
// repeats.
type Queries struct {
	Head, Rel []int32
	Indptr    []int64
	Tails     []int32
}

// NewQueries groups triples by head and relation. Cost: a sort.
func NewQueries(t Triples) *Queries {
	order := make([]int32, t.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Head[a], t.Head[b]), cmp.Compare(t.Rel[a], t.Rel[b]), cmp.Compare(t.Tail[a], t.Tail[b]))
	})
	q := &Queries{Tails: make([]int32, 0, len(order))}
	for k, i := range order {
		before := int32(-1)
		if k > 0 {
			before = order[k-1]
		}
		switch {
		case before < 0 || t.Head[i] != t.Head[before] || t.Rel[i] != t.Rel[before]:
			q.Head, q.Rel = append(q.Head, t.Head[i]), append(q.Rel, t.Rel[i])
			q.Indptr = append(q.Indptr, int64(len(q.Tails)))
		case t.Tail[i] == t.Tail[before]:
			continue
		}
		q.Tails = append(q.Tails, t.Tail[i])
	}
	q.Indptr = append(q.Indptr, int64(len(q.Tails)))
	return q
}

// Len is the number of queries.
func (q *Queries) Len() int { return len(q.Head) }

// Of returns the answers of query i, which share the queries' memory.
func (q *Queries) Of(i int) []int32 { return q.Tails[q.Indptr[i]:q.Indptr[i+1]] }

// Answers returns the answers of a query, nil if it is not there. They share the queries' memory. Cost:
// a binary search.
func (q *Queries) Answers(head, rel int32) []int32 {
	i := sort.Search(q.Len(), func(i int) bool {
		return q.Head[i] > head || q.Head[i] == head && q.Rel[i] >= rel
	})
	if i == q.Len() || q.Head[i] != head || q.Rel[i] != rel {
		return nil
	}
	return q.Of(i)
}

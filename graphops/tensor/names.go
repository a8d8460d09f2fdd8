package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Types of package ops that the code of models needs, under short names.
type (
	Op    = ops.Op
	Space = ops.Space
)

// The aggregations.
const (
	Mean = ops.Mean
	Sum  = ops.Sum
	Max  = ops.Max
)

// SrcSpace is the space of a block's sources.
func SrcSpace(b *graphops.Block) *Space { return ops.SrcSpace(b) }

// DstSpace is the space of a block's destinations.
func DstSpace(b *graphops.Block) *Space { return ops.DstSpace(b) }

// EdgeSpace is the space of a block's edges.
func EdgeSpace(b *graphops.Block) *Space { return ops.EdgeSpace(b) }

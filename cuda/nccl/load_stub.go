//go:build !cuda || !linux || !cgo

package nccl

import "github.com/graphnb/graphnb/cuda"

func load(string) (library, error) { return nil, cuda.ErrNotBuilt }

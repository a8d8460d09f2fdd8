//go:build !cuda || !linux || !cgo

package nccl

import "github.com/graphnb/graphnb/internal/cuda"

func load(string) (library, error) { return nil, cuda.ErrNotBuilt }

//go:build cuda && linux && cgo && gnb_interpreted

package main

import _ "github.com/graphnb/graphnb/internal/cuda/interpreted" // in place of a GPU

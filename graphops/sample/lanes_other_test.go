//go:build !amd64

package sample

import "testing"

func onPaths(t *testing.T, f func(t *testing.T)) { t.Run("go", f) }

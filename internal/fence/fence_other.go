//go:build !unix

package fence

import "testing"

// between is plain memory where pages cannot be protected.
func between(_ testing.TB, size int) []byte { return make([]byte, size) }

//go:build !unix

package fence

import "testing"

// between returns plain memory on systems that cannot protect pages.
func between(_ testing.TB, size int) []byte { return make([]byte, size) }

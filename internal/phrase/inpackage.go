package phrase

import "fmt"

// inPackage is an error whose text begins with the package that made it.
type inPackage struct {
	name string
	err  error
}

func (e *inPackage) Error() string { return e.name + ": " + e.err.Error() }
func (e *inPackage) Unwrap() error { return e.err }

// Errorf is fmt.Errorf for an error of the named package, with which its text begins.
func Errorf(pkg, format string, args ...any) error {
	return &inPackage{pkg, fmt.Errorf(format, args...)}
}

// Bare returns an error of [Errorf] without its package, for a text that begins with another one, and
// any other error unchanged.
func Bare(err error) error {
	if e, ok := err.(*inPackage); ok { //nolint:errorlint // of a wrapped one, the package is not at the beginning
		return e.err
	}
	return err
}

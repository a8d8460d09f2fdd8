package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// userKey is a secret of this user, which a file in the user's cache directory keeps (mode 0600). The name at which rank 0
// waits for the ranks of its machine follows from it, so no other user can take that name first. It is "" if there is no
// directory for it, or if others can read it.
var userKey = sync.OnceValue(func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	key, _ := keyIn(filepath.Join(dir, "graphnb")) // without one the name follows from the job alone
	return key
})

func keyIn(dir string) (string, error) {
	path := filepath.Join(dir, "rank-key")
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".rank-key-") // has mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	_, err = f.WriteString(hex.EncodeToString(b))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) { // another rank may be faster
		return "", err
	}
	return readKey(path)
}

func readKey(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() != 64:
		return "", errors.New("cluster: " + path + " is no key of this user")
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

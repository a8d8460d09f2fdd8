package main

import (
	"errors"
	"strings"
	"testing"
)

func TestSharedMemoryOfNCCL(t *testing.T) {
	for _, tc := range []struct {
		name string
		gpus int
		size int64
		err  error
		ok   bool
		says string
	}{
		{"no GPU", 0, 64 << 20, nil, true, "nothing here needs"},
		{"one GPU", 1, 0, errors.New("gone"), true, "nothing here needs"},
		{"two GPUs in a container", 2, 64 << 20, nil, false, "64 MiB"},
		{"two GPUs, nothing mounted", 2, 0, errors.New("gone"), false, "gone"},
		{"two GPUs", 2, 2 * gib, nil, true, "2 GiB"},
	} {
		if c := judgeShm(tc.gpus, tc.size, tc.err); c.OK != tc.ok || !strings.Contains(c.Detail, tc.says) || c.OK == (c.Fix != "") {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
}

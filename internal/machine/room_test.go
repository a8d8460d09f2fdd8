package machine

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		m    Memory
		need float64
		want string
	}{
		"enough":         {Memory{Free: 1 << 30, Total: 1 << 31}, 1 << 30, ""},
		"too much":       {Memory{Free: 1 << 30, Total: 1 << 31}, 3 << 29, "the model would take 1.5 GiB of memory, and 1.0 GiB of this machine's 2.0 GiB are free"},
		"in a group":     {Memory{Free: 1 << 30, Limit: 1 << 31, Total: 1 << 31}, 3 << 29, "1.0 GiB of the control group's 2.0 GiB are free"},
		"beyond integer": {Memory{Free: 1 << 30, Total: 1 << 31}, 1e30, "would take 1e+30 bytes of memory"},
	} {
		err := c.m.room("the model", c.need)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var room *RoomError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &room) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Room("a page", 4096); err != nil {
		t.Error(err)
	}
	if err := Room("a world", 1e20); (err != nil) != (runtime.GOOS == "linux") {
		t.Error(err)
	}
}

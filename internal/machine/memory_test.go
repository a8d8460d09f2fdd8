package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestRead(t *testing.T) {
	const meminfo = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Memory
		fails bool
	}{
		"no group":        {map[string]string{"proc/meminfo": meminfo}, Memory{Free: 4000 << 10, Total: 9000 << 10}, false},
		"no limit":        {map[string]string{"proc/meminfo": meminfo, "groups/memory.max": "max\n", "groups/memory.current": "77\n"}, Memory{Free: 4000 << 10, Total: 9000 << 10}, false},
		"a container":     {map[string]string{"proc/meminfo": meminfo, "groups/memory.max": "1000\n", "groups/memory.current": "400\n"}, Memory{600, 1000, 1000}, false},
		"caches":          {map[string]string{"proc/meminfo": meminfo, "groups/memory.max": "1000\n", "groups/memory.current": "990\n", "groups/memory.stat": "anon 300\ninactive_file 500\nactive_file 100\n"}, Memory{610, 1000, 1000}, false},
		"above it":        {map[string]string{"proc/meminfo": meminfo, "groups/memory.max": "1000\n", "groups/memory.current": "1400\n"}, Memory{0, 1000, 1000}, false},
		"a large limit":   {map[string]string{"proc/meminfo": meminfo, "groups/memory.max": "90000000000\n", "groups/memory.current": "400\n"}, Memory{Free: 4000 << 10, Total: 9000 << 10}, false},
		"a group's own":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job/step\n", "groups/job/step/memory.max": "500\n", "groups/job/step/memory.current": "100\n"}, Memory{400, 500, 500}, false},
		"of one above":    {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "1:cpu:/x\n0::/job/step\n", "groups/job/step/memory.max": "max\n", "groups/job/memory.max": "500\n", "groups/job/memory.current": "300\n"}, Memory{200, 500, 500}, false},
		"version 1":       {map[string]string{"proc/meminfo": meminfo, "groups/memory/memory.limit_in_bytes": "1000\n", "groups/memory/memory.usage_in_bytes": "990\n", "groups/memory/memory.stat": "inactive_file 7\ntotal_inactive_file 500\ntotal_active_file 100\n"}, Memory{610, 1000, 1000}, false},
		"1, no limit":     {map[string]string{"proc/meminfo": meminfo, "groups/memory/memory.limit_in_bytes": "9223372036854771712\n", "groups/memory/memory.usage_in_bytes": "990\n"}, Memory{Free: 4000 << 10, Total: 9000 << 10}, false},
		"1, its own":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu,cpuacct:/x\n4:hugetlb,memory:/job/step\n0::/\n", "groups/memory/job/step/memory.limit_in_bytes": "500\n", "groups/memory/job/step/memory.usage_in_bytes": "100\n"}, Memory{400, 500, 500}, false},
		"1, of one above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/job/step\n", "groups/memory/job/memory.limit_in_bytes": "500\n", "groups/memory/job/memory.usage_in_bytes": "300\n"}, Memory{200, 500, 500}, false},
		"1, a container":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/docker/abc\n", "groups/memory/memory.limit_in_bytes": "500\n", "groups/memory/memory.usage_in_bytes": "100\n"}, Memory{400, 500, 500}, false},
		"another system":  {nil, Memory{}, true},
		"an old kernel":   {map[string]string{"proc/meminfo": "MemTotal: 9000 kB\n"}, Memory{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readMemoryIn(filepath.Join(dir, "proc"), filepath.Join(dir, "groups"))
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if m, err := ReadMemory(); runtime.GOOS == "linux" && (err != nil || m.Free <= 0) {
		t.Errorf("for this machine: %+v, %v", m, err)
	}
}

// Package fakehelper makes a test program that imitates the helper of internal/machine for two
// simulated GPUs.
package fakehelper

import (
	"os"
	"path/filepath"
	"testing"
)

// Make writes the program and returns its path. It reports two GPUs every 100 ms: the first is
// busier every time, the second falls off the bus after 0.8 s. The file with ".pid" appended holds
// its process id.
func Make(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gnb")
	text := `#!/bin/sh
echo $$ > $0.pid
echo '{"event":"hello","protocol":1}'
( n=0
while sleep 0.1; do
n=$((n+1))
second='"utilization":0.5,"power_w":100'
[ $n -gt 8 ] && second='"error":"fell off the bus","utilization":null,"power_w":null'
echo '{"event":"gpus","driver":"1","gpus":[{"index":0,"name":"A","utilization":0.'$((n%10))',"memory_used":4e9,"memory_total":8e9,"temperature_c":60,"power_w":200,"throttled":["power cap"],"processes":[{"pid":7,"name":"w","memory":3e9,"run":"r1"},{"pid":8,"name":"w","memory":1e9,"run":"r2"}]},{"index":1,"name":"B",'$second',"memory_used":null,"memory_total":null,"temperature_c":null}]}'
done ) &
loop=$!
cat >/dev/null
kill $loop
`
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

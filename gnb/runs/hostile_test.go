package runs

import "testing"

// A run's record names no servers: a program would show them its token.
func TestRecordNamesNoServers(t *testing.T) {
	const address = "grpcs://evil.example:7700?ca=/tmp/ca.pem"
	for _, c := range []Config{{DatasetDir: address}, {DatasetSource: generatedBy + address}, {DatasetDir: address, DatasetSource: generatedBy + address}} {
		if spec := (&Run{Config: c}).DatasetSpec(); spec != "" {
			t.Errorf("the dataset of %+v is %q", c, spec)
		}
	}
	if spec := (&Run{Config: Config{DatasetSource: generatedBy + "planted?nodes=7"}}).DatasetSpec(); spec != "planted?nodes=7" {
		t.Errorf("a generated dataset is %q", spec)
	}
}

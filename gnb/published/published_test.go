package published_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	_ "github.com/graphnb/graphnb/gnb/published"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// TestMain sets a proxy address at which no process listens, so that no request reaches the
// network. The proxy's settings are read once per process.
func TestMain(m *testing.M) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if err := os.Setenv(name, "http://"+l.Addr().String()); err != nil {
			panic(err)
		}
	}
	_ = l.Close()
	os.Exit(m.Run())
}

// A program that imports this package gets published data without the command gnb.
func TestAPlainProgramGetsPublishedData(t *testing.T) {
	data := filepath.Dir(filepath.Dir(testneed.RealData(t, "planetoid/ind.cora.graph")))
	t.Setenv("GNB_HOME", t.TempDir())
	t.Setenv(envknob.Data.Name, data)
	t.Setenv("PATH", t.TempDir())
	ds, err := gnb.Load(t.Context(), "cora")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if ds.Nodes() != 2708 || ds.Classes() != 7 {
		t.Errorf("got %s", ds)
	}
	if err := ds.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Without a network, Load gives up soon, and its error names the alternatives.
func TestWithoutANetwork(t *testing.T) {
	testneed.NotShort(t, "it waits for answers")
	t.Setenv("GNB_HOME", t.TempDir())
	t.Setenv(envknob.Data.Name, filepath.Join(t.TempDir(), "none"))
	start := time.Now()
	_, err := gnb.Load(t.Context(), "cora")
	if err == nil {
		t.Fatal("loading cora without a network gave no error")
	}
	for _, want := range []string{"2 attempts", "GNB_DATA", "gnb data convert", "ind.cora.graph"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is\n%v\nand lacks %s", err, want)
		}
	}
	t.Logf("it took %v", time.Since(start))
}

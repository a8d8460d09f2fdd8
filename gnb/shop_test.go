package gnb_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A user's program (testdata/shop) converts tables of users, items and two relations, and trains
// an R-GCN on them. Whether a user leaves shows only in what the user returns: items of the bad sort.
func TestShopProgram(t *testing.T) {
	testneed.NotShort(t, "it builds a program and trains")
	dir := t.TempDir()
	u := rand.New(rand.NewPCG(1, 2))
	const users, items = 900, 300
	tables := map[string]*strings.Builder{}
	line := func(name, format string, args ...any) {
		if tables[name] == nil {
			tables[name] = &strings.Builder{}
		}
		fmt.Fprintf(tables[name], format+"\n", args...)
	}
	line("nodes.item", "id,bad,price")
	for i := range items { // every third item is bad
		line("nodes.item", "i%d,%d,%.2f", i, map[bool]int{true: 1}[i%3 == 0], 10*u.Float64())
	}
	line("nodes.user", "id,label,split,age")
	line("edges.user.buys.item", "source,target")
	line("edges.user.returns.item", "source,target")
	for i := range users {
		leaves := u.IntN(2) == 0
		line("nodes.user", "u%d,%s,%s,%d", i, map[bool]string{true: "leaves", false: "stays"}[leaves], []string{"train", "train", "val", "test"}[i%4], 20+u.IntN(60))
		for range 6 { // buys and returns the same numbers of items of each sort, but in the other roles
			bad := u.IntN(2) == 0
			item := 3*u.IntN(items/3) + map[bool]int{true: 0, false: 1}[bad]
			line("edges.user."+map[bool]string{true: "returns", false: "buys"}[bad == leaves]+".item", "u%d,i%d", i, item)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "shop"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range tables {
		if err := os.WriteFile(filepath.Join(dir, "shop", name+".csv"), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(userProgram(t, dir, "shop"))
	run.Dir, run.Env = dir, append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := regexp.MustCompile(`test accuracy (\d\.\d+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no accuracy in\n%s", out)
	}
	if a, _ := strconv.ParseFloat(string(m[1]), 64); a < 0.8 { // without the relations 0.5
		t.Errorf("the accuracy is %v:\n%s", a, out)
	}
	t.Logf("%s", m[0])
}

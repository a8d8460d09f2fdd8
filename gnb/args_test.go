package gnb_test

import (
	"math"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
)

type argInner struct {
	Hidden int
	depth  int
}

type embeddedArgs struct{ Width int }

type anyArgs struct {
	LR       float64
	Inner    argInner
	List     []argInner
	ByName   map[string]argInner
	At       time.Time
	For      time.Duration
	Any      any
	Skipped  func() `json:"-"`
	Short    []int  `json:",omitempty"`
	Renamed  int    `json:"rate"`
	Rate     int    `json:"Rate"`
	Text     string
	Pointer  *argInner
	Loader   gnb.Loader
	Sizes    gnb.ModelConfig
	embedded embeddedArgs
	embeddedArgs
}

var argsProgram = gnb.Program("test.args", func(w *gnb.Worker, a anyArgs) error {
	w.Result("lr", a.LR)
	w.Result("width", float64(a.Width))
	w.Result("names", float64(len(a.ByName)))
	return nil
})

// Launch refuses an argument if a part of it would not reach the workers. The error, before
// anything starts, names the field and says what to do. Complete arguments are accepted.
func TestArgumentsReachWorkersWhole(t *testing.T) {
	for name, c := range map[string]struct {
		args anyArgs
		want string
	}{
		"unexported":           {anyArgs{embedded: embeddedArgs{3}}, `field anyArgs\.embedded is unexported and would be zero there; name it Embedded, or leave it out`},
		"unexported below":     {anyArgs{Inner: argInner{4, 2}}, `field anyArgs\.Inner\.depth is unexported and would be zero there; name it Depth`},
		"unexported in list":   {anyArgs{List: []argInner{{}, {1, 1}}}, `field anyArgs\.List\[1\]\.depth is unexported`},
		"unexported in map":    {anyArgs{ByName: map[string]argInner{"a": {1, 1}}}, `field anyArgs\.ByName\[a\]\.depth is unexported`},
		"unexported by a link": {anyArgs{Pointer: &argInner{1, 1}}, `field anyArgs\.Pointer\.depth is unexported`},
		"left out":             {anyArgs{Skipped: func() {}}, "field anyArgs\\.Skipped has the tag `json:\"-\"` and would be zero there; remove the tag"},
		"a text that is none":  {anyArgs{Text: "a\xffb"}, `field anyArgs\.Text would be another value there`},
		"not a number":         {anyArgs{LR: math.NaN()}, `cannot be sent to workers`},
		"no decoder":           {anyArgs{Any: make(chan int)}, `cannot be sent to workers`},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := gnb.Launch(t.Context(), argsProgram, c.args, gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()})
			readable(t, err, `gnb: the arguments of program "test\.args" .*`+c.want)
			if run != nil {
				t.Error("Launch started a run")
			}
		})
	}
	run, err := gnb.Launch(t.Context(), argsProgram, anyArgs{
		LR: 0.5, Inner: argInner{Hidden: 3}, List: []argInner{{Hidden: 1}}, ByName: map[string]argInner{"a": {Hidden: 2}}, At: time.Now(), For: time.Second,
		Any: map[string]any{"n": 3, "list": []int{1, 2}}, Short: []int{}, Renamed: 1, Rate: 2, Text: "ä", Pointer: &argInner{Hidden: 9},
		Loader: gnb.Loader{Fanouts: []int{3}}, Sizes: gnb.ModelConfig{Hidden: 4}, embeddedArgs: embeddedArgs{7},
	}, gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if run.Value("lr") != 0.5 || run.Value("width") != 7 || run.Value("names") != 1 {
		t.Errorf("the arguments arrived as %v", run.Result.Values)
	}
}

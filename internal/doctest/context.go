package doctest

import (
	"slices"
	"strings"
)

const module = "github.com/graphnb/graphnb"

// Packages lists, by name, the packages that a piece may use without importing them: a notebook's
// kernel adds imports of the standard library, and cells share imports of the module.
var Packages = map[string]string{
	"gnb":         module + "/gnb",
	"runs":        module + "/gnb/runs",
	"inspect":     module + "/gnb/inspect",
	"report":      module + "/gnb/report",
	"figure":      module + "/gnb/figure",
	"scaling":     module + "/gnb/scaling",
	"sweep":       module + "/gnb/sweep",
	"monitor":     module + "/gnb/monitor",
	"parts":       module + "/gnb/parts",
	"links":       module + "/gnb/links",
	"kg":          module + "/gnb/kg",
	"events":      module + "/gnb/events",
	"numbers":     module + "/gnb/numbers",
	"answer":      module + "/gnb/answer",
	"deploy":      module + "/gnb/deploy",
	"explain":     module + "/gnb/explain",
	"onnx":        module + "/gnb/onnx",
	"predict":     module + "/gnb/predict",
	"graphs":      module + "/gnb/graphs",
	"budget":      module + "/gnb/budget",
	"tables":      module + "/gnb/tables",
	"history":     module + "/gnb/history",
	"graphops":    module + "/graphops",
	"dataset":     module + "/graphops/dataset",
	"convert":     module + "/graphops/dataset/convert",
	"sample":      module + "/graphops/sample",
	"ops":         module + "/graphops/ops",
	"tensor":      module + "/graphops/tensor",
	"gradcheck":   module + "/graphops/tensor/gradcheck",
	"nn":          module + "/graphops/nn",
	"optim":       module + "/graphops/optim",
	"metrics":     module + "/graphops/metrics",
	"datasets":    module + "/graphops/datasets",
	"safetensors": module + "/graphops/safetensors",
	"pairs":       module + "/graphops/pairs",
	"temporal":    module + "/graphops/temporal",
	"walk":        module + "/graphops/walk",
	"context":     "context",
	"errors":      "errors",
	"flag":        "flag",
	"fmt":         "fmt",
	"math":        "math",
	"os":          "os",
	"filepath":    "path/filepath",
	"rand":        "math/rand/v2",
	"slices":      "slices",
	"sort":        "sort",
	"strconv":     "strconv",
	"strings":     "strings",
	"testing":     "testing",
	"time":        "time",
}

// Context lists the variables that pages use without declaring them, with their types.
var Context = map[string]string{
	"ctx":     "context.Context",
	"ds":      "*gnb.Dataset",
	"g":       "*gnb.Graph",
	"schema":  "*graphops.Schema",
	"hetero":  "*gnb.Dataset",
	"triples": "*gnb.Dataset",
	"run":     "*runs.Run",
	"w":       "*gnb.Worker",
	"net":     "*gnb.Net[*nn.SAGE]",
	"opt":     "*gnb.Optimizer",
	"b":       "*gnb.Batch",
	"block":   "*gnb.Block",
	"f":       "*nn.Fwd",
	"h":       "*nn.Tensor",
	"out":     "*nn.Tensor",
	"loss":    "*nn.Loss",
	"epoch":   "int",
	"k":       "int",
	"lr":      "float64",
	"s":       "gnb.ModelConfig",

	"ids":      "[]int32", // nodes
	"src":      "[]int32", // of edges
	"dst":      "[]int32",
	"own":      "*gnb.Dataset", // a dataset in memory
	"score":    "*nn.Tensor",   // of edges
	"scores":   "[]float32",    // of nodes
	"labels":   "[]int8",
	"accuracy": "float64",
	"sums":     "[]float64",
}

// prefixes returns the names that distinguish Go code in a sentence from other languages.
func prefixes() []string {
	var all []string
	for name, path := range Packages {
		if strings.HasPrefix(path, module) {
			all = append(all, name)
		}
	}
	for name, typ := range Context {
		if strings.Contains(typ, "gnb.") || strings.Contains(typ, "nn.") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

package recipe

import "strings"

// row is a line of the published settings. how has the switches: l and b are the layer and the batch norm, r is the residual
// and p the linear layer before the first one.
type row struct {
	name, model string
	best        bool // the best published result of the set's three models
	how         string
	hidden      int
	layers      int
	dropout     float64
	lr, decay   float64
	epochs      int
}

func (p row) settings() Settings {
	norm := ""
	switch {
	case strings.Contains(p.how, "l"):
		norm = "layer"
	case strings.Contains(p.how, "b"):
		norm = "batch"
	}
	return Settings{
		Norm: norm, Residual: strings.Contains(p.how, "r"), PreLinear: strings.Contains(p.how, "p"),
		Hidden: p.hidden, Layers: p.layers, Dropout: p.dropout, LR: p.lr, WeightDecay: p.decay, Epochs: p.epochs,
	}
}

// published are the settings of the source by the names of the sets in the registry and in their files; all with one head and
// Adam. Those of tolokers are not published: they are GraphNB's own.
var published = []row{
	{"amazon_cs", "gcn", false, "l", 512, 3, .5, .001, 5e-5, 1000},
	{"amazon_cs", "sage", false, "l", 64, 4, .3, .001, 5e-5, 1000},
	{"amazon_cs", "gat", true, "l", 64, 2, .5, .001, 5e-5, 1000},
	{"amazon_photo", "gcn", false, "lr", 256, 6, .5, .001, 5e-5, 1000},
	{"amazon_photo", "sage", false, "lr", 64, 6, .2, .001, 5e-5, 1000},
	{"amazon_photo", "gat", true, "lr", 64, 3, .5, .001, 5e-5, 1000},
	{"coauthor_cs", "gcn", false, "lr", 512, 2, .3, .001, 5e-4, 1500},
	{"coauthor_cs", "sage", true, "lr", 512, 2, .5, .001, 5e-4, 1500},
	{"coauthor_cs", "gat", false, "lr", 256, 1, .3, .001, 5e-4, 1500},
	{"coauthor_phy", "gcn", true, "lr", 64, 2, .3, .001, 5e-4, 1500},
	{"coauthor_phy", "sage", false, "br", 64, 2, .7, .001, 5e-4, 1500},
	{"coauthor_phy", "gat", false, "br", 256, 2, .7, .001, 5e-4, 1500},
	{"wikics", "gcn", false, "l", 256, 3, .5, .001, 0, 1000},
	{"wikics", "sage", false, "l", 256, 2, .7, .001, 0, 1000},
	{"wikics", "gat", true, "lr", 512, 2, .7, .001, 0, 1000},
	{"cora", "gcn", true, "", 512, 3, .7, .001, 5e-4, 500},
	{"cora", "sage", false, "", 256, 3, .7, .001, 5e-4, 500},
	{"cora", "gat", false, "r", 512, 3, .2, .001, 5e-4, 500},
	{"citeseer", "gcn", true, "", 512, 2, .5, .001, .01, 500},
	{"citeseer", "sage", false, "", 512, 3, .2, .001, .01, 500},
	{"citeseer", "gat", false, "r", 256, 3, .5, .001, .01, 500},
	{"pubmed", "gcn", true, "", 256, 2, .7, .005, 5e-4, 500},
	{"pubmed", "sage", false, "", 512, 4, .7, .005, 5e-4, 500},
	{"pubmed", "gat", false, "", 512, 2, .5, .01, 5e-4, 500},
	{"amazon-ratings", "gcn", false, "br", 512, 4, .5, .001, 0, 2500},
	{"amazon-ratings", "sage", false, "br", 512, 9, .5, .001, 0, 2500},
	{"amazon-ratings", "gat", true, "br", 512, 4, .5, .001, 0, 2500},
	{"minesweeper", "gcn", true, "br", 64, 12, .2, .01, 0, 2000},
	{"minesweeper", "sage", false, "br", 64, 15, .2, .01, 0, 2000},
	{"minesweeper", "gat", false, "br", 64, 15, .2, .01, 0, 2000},
	{"roman-empire", "gcn", true, "pbr", 512, 9, .5, .001, 0, 2500},
	{"roman-empire", "sage", false, "pb", 256, 9, .3, .001, 0, 2500},
	{"roman-empire", "gat", false, "pbr", 512, 10, .3, .001, 0, 2500},
	{"questions", "gcn", true, "pr", 512, 10, .3, 3e-5, 0, 1500},
	{"questions", "sage", false, "pl", 512, 6, .2, 3e-5, 0, 1500},
	{"questions", "gat", false, "plr", 512, 3, .2, 3e-5, 0, 1500},
	{"squirrel_filtered", "gcn", true, "br", 256, 4, .7, .01, 5e-4, 500},
	{"squirrel_filtered", "sage", false, "br", 256, 3, .7, .01, 5e-4, 500},
	{"squirrel_filtered", "gat", false, "br", 512, 7, .5, .005, 5e-4, 500},
	{"chameleon_filtered", "gcn", true, "", 512, 5, .2, .005, .001, 200},
	{"chameleon_filtered", "sage", false, "br", 256, 4, .7, .01, .001, 200},
	{"chameleon_filtered", "gat", false, "br", 256, 2, .7, .01, .001, 200},
}

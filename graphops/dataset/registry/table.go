package registry

import "strings"

const (
	accuracy = "accuracy"
	rocAUC   = "roc_auc"
	microF1  = "micro_f1"

	mib = 1 << 20
	gib = 1 << 30

	planetoidCitation = "Z. Yang, W. W. Cohen, R. Salakhutdinov, Revisiting semi-supervised learning with graph embeddings, ICML 2016, doi:10.48550/arXiv.1603.08861"
	shchurCitation    = "O. Shchur, M. Mumme, A. Bojchevski, S. Günnemann, Pitfalls of graph neural network evaluation, 2018, doi:10.48550/arXiv.1811.05868"
	platonovCitation  = "O. Platonov, D. Kuznedelev, M. Diskin, A. Babenko, L. Prokhorenkova, A critical look at the evaluation of GNNs under heterophily, ICLR 2023, doi:10.48550/arXiv.2302.11640"
	saintCitation     = "H. Zeng, H. Zhou, A. Srivastava, R. Kannan, V. Prasanna, GraphSAINT: graph sampling based inductive learning method, ICLR 2020, doi:10.48550/arXiv.1907.04931"
	sageCitation      = "W. L. Hamilton, R. Ying, J. Leskovec, Inductive representation learning on large graphs, NIPS 2017, doi:10.48550/arXiv.1706.02216"
	ogbCitation       = "W. Hu et al., Open Graph Benchmark: datasets for machine learning on graphs, NeurIPS 2020, doi:10.48550/arXiv.2005.00687"

	kipf       = "Kipf and Welling, ICLR 2017, table 2"
	velickovic = "Veličković et al., ICLR 2018, table 2"
	shchur     = "Shchur et al. 2018, table 1, random splits"
	platonov   = "Platonov et al., ICLR 2023, table 4"
	saint      = "Zeng et al., ICLR 2020, table 2"
	hu         = "Hu et al., NeurIPS 2020"
)

func table() []Entry {
	return []Entry{
		planetoidEntry("cora", "citations between papers on machine learning", 2708, 10556, 1433, 7,
			Accuracy{"GCN", 81.5, 0, kipf}, Accuracy{"GAT", 83.0, 0.7, velickovic}),
		planetoidEntry("citeseer", "citations between papers on computer science", 3327, 9104, 3703, 6,
			Accuracy{"GCN", 70.3, 0, kipf}, Accuracy{"GAT", 72.5, 0.7, velickovic}),
		planetoidEntry("pubmed", "citations between papers on diabetes", 19717, 88648, 500, 3,
			Accuracy{"GCN", 79.0, 0, kipf}, Accuracy{"GAT", 79.0, 0.3, velickovic}),

		shchurEntry("amazon_cs", "amazon-computers", "computers bought together at Amazon", 13752, 491722, 767, 10,
			Accuracy{"GCN", 82.6, 2.4, shchur}, Accuracy{"GAT", 78.0, 19.0, shchur}, Accuracy{"SAGE (mean)", 82.4, 1.8, shchur}),
		shchurEntry("amazon_photo", "amazon-photo", "photo equipment bought together at Amazon", 7650, 238162, 745, 8,
			Accuracy{"GCN", 91.2, 1.2, shchur}, Accuracy{"GAT", 85.7, 20.3, shchur}, Accuracy{"SAGE (mean)", 91.4, 1.3, shchur}),
		shchurEntry("coauthor_cs", "coauthor-cs", "authors of papers on computer science", 18333, 163788, 6805, 15,
			Accuracy{"GCN", 91.1, 0.5, shchur}, Accuracy{"GAT", 90.5, 0.6, shchur}, Accuracy{"SAGE (mean)", 91.3, 2.8, shchur}),
		shchurEntry("coauthor_phy", "coauthor-physics", "authors of papers on physics", 34493, 495924, 8415, 5,
			Accuracy{"GCN", 92.8, 1.0, shchur}, Accuracy{"GAT", 92.5, 0.9, shchur}, Accuracy{"SAGE (mean)", 93.0, 0.8, shchur}),

		platonovEntry("roman-empire", "words of an article, joined by grammar", accuracy, 22662, 65854, 300, 18,
			Accuracy{"GCN", 73.69, 0.74, platonov}, Accuracy{"SAGE", 85.74, 0.67, platonov}, Accuracy{"GAT", 80.87, 0.30, platonov}),
		platonovEntry("amazon-ratings", "products bought together, classed by their rating", accuracy, 24492, 186100, 300, 5,
			Accuracy{"GCN", 48.70, 0.63, platonov}, Accuracy{"SAGE", 53.63, 0.39, platonov}, Accuracy{"GAT", 49.09, 0.63, platonov}),
		platonovEntry("minesweeper", "a grid with mines", rocAUC, 10000, 78804, 7, 2,
			Accuracy{"GCN", 89.75, 0.52, platonov}, Accuracy{"SAGE", 93.51, 0.57, platonov}, Accuracy{"GAT", 92.01, 0.68, platonov}),
		platonovEntry("tolokers", "workers of a crowdsourcing platform, some of them banned", rocAUC, 11758, 1038000, 10, 2,
			Accuracy{"GCN", 83.64, 0.67, platonov}, Accuracy{"SAGE", 82.43, 0.44, platonov}, Accuracy{"GAT", 83.70, 0.47, platonov}),
		platonovEntry("questions", "users of a site for questions and answers", rocAUC, 48921, 307080, 301, 2,
			Accuracy{"GCN", 76.09, 1.27, platonov}, Accuracy{"SAGE", 76.44, 0.62, platonov}, Accuracy{"GAT", 77.43, 1.20, platonov}),

		sageEntry("reddit", "posts joined by those who comment on both", accuracy, 232965, 114615892, 602, 41, 4*gib,
			Accuracy{"SAGE (mean)", 95.0, 0, "Hamilton et al., NIPS 2017, table 1"}),
		sageEntry("ppi", "24 graphs of protein interactions", microF1, 56944, 1587264, 50, 121, gib,
			Accuracy{"SAGE (mean)", 59.8, 0, "Hamilton et al., NIPS 2017, table 1"}),

		saintEntry("flickr", "images with common properties", accuracy, 89250, 899756, 500, 7, 2*gib, saintFiles{
			"1crmsTbd1-2sEXsGwa2IKnIB7Zd3TmUsy", "1join-XdvX3anJU_MLVtick7MgeAQiWIZ", "1uxIkbtg5drHTsKt-PAsZZ4_yJmgFmle9", "1htXCtuktuCW8TR8KiKfrFDAxUgekQoV7",
		}, Accuracy{"GCN", 49.2, 0.3, saint}, Accuracy{"SAGE", 50.1, 1.3, saint}, Accuracy{"GraphSAINT-RW", 51.1, 0.1, saint}),
		saintEntry("reddit2", "reddit with a fifth of the edges", accuracy, 232965, 23213838, 602, 41, 4*gib, saintFiles{
			"1sncK996BM5lpuDf75lDFqCiDZyErc1c2", "1ZsHaJ0ussP1W722krmEIp_8pwKAoi5b3", "1JF3Pjv9OboMNYs2aXRQGbJbc4t_nDd5u", "1nJIKd77lcAGU4j-kVNx_AIGEkveIKz3A",
		}, Accuracy{"GCN", 93.3, 0, saint}, Accuracy{"SAGE", 95.3, 0.1, saint}, Accuracy{"GraphSAINT-RW", 96.6, 0.1, saint}),
		saintEntry("yelp", "reviewers and their friends", microF1, 716847, 13954819, 300, 100, 4*gib, saintFiles{
			"1Juwx8HtDwSzmVIJ31ooVa1WljI4U5JnA", "1Zy6BZH_zLEjKlEFSduKE5tV9qqA_8VtM", "1VUcBGr0T0-klqerjAjxRmAqFuld_SMWU", "1NI5pa5Chpd-52eSmLW60OnB3WS5ikxq_",
		}, Accuracy{"GCN", 37.8, 0.1, saint}, Accuracy{"SAGE", 63.4, 0.6, saint}, Accuracy{"GraphSAINT-RW", 65.3, 0.3, saint}),
		saintEntry("amazon", "products with buyers in common", microF1, 1569960, 264339468, 200, 107, 8*gib, saintFiles{
			"17qhNA8H1IpbkkR-T2BmPQm8QNW5do-aa", "10SW8lCvAj-kb6ckkfTOC5y0l8XXdtMxj", "1LIl4kimLfftj4-7NmValuWyCQE8AaE7P", "1npK9xlmbnjNkV80hK2Q68wTEVOFjnt4K",
		}, Accuracy{"GCN", 28.1, 0.5, saint}, Accuracy{"SAGE", 75.8, 0.2, saint}, Accuracy{"GraphSAINT-RW", 81.5, 0.1, saint}),

		ogbEntry("ogbn-arxiv", "citations between arXiv papers on computer science, made undirected", "arxiv", "ODC-BY-1.0", 169343, 2315598, 128, 40, gib,
			Accuracy{"GCN", 71.74, 0.29, hu}, Accuracy{"SAGE", 71.49, 0.27, hu}, Accuracy{"MLP", 55.50, 0.23, hu}),
		ogbEntry("ogbn-products", "products bought together at Amazon", "products", "Amazon licence", 2449029, 123718280, 100, 47, 4*gib,
			Accuracy{"GCN", 75.64, 0.21, hu}, Accuracy{"SAGE", 78.50, 0.14, hu}, Accuracy{"MLP", 61.06, 0.08, hu}),
		ogbEntry("ogbn-papers100M", "citations between 111 million papers, made undirected; 57 GB to download", "papers100M-bin", "ODC-BY-1.0", 111059956, 3228124712, 128, 172, 80*gib,
			Accuracy{"SGC", 63.29, 0.19, hu}, Accuracy{"MLP", 47.24, 0.31, hu}),
	}
}

// fill completes the checksum table's entry of a file.
func fill(sums map[string]File, base, name string, maxSize int64) File {
	f := sums[name]
	f.Name, f.URL, f.MaxSize = name, base+name, maxSize
	return f
}

func planetoidEntry(name, summary string, nodes int, edges int64, features, classes int, known ...Accuracy) Entry {
	e := Entry{
		Name: name, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: accuracy, Homepage: "https://github.com/kimiyoung/planetoid", Licence: "MIT (of the repository)",
		Citation: planetoidCitation, Folder: "planetoid", Format: "planetoid", Known: known,
	}
	for _, part := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"} {
		e.Files = append(e.Files, fill(planetoidSums, planetoidURL, "ind."+name+"."+part, 64*mib))
	}
	return e
}

func shchurEntry(name, alias, summary string, nodes int, edges int64, features, classes int, known ...Accuracy) Entry {
	return Entry{
		Name: name, Aliases: []string{alias}, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: accuracy, Homepage: "https://github.com/shchur/gnn-benchmark", Licence: "MIT (of the repositories)",
		Citation: shchurCitation, Folder: "shchur", Format: "npz", Known: known,
		Files: []File{fill(shchurSums, shchurURL, name+".npz", 256*mib)},
	}
}

func platonovEntry(name, summary, metric string, nodes int, edges int64, features, classes int, known ...Accuracy) Entry {
	file := map[string]string{"roman-empire": "roman_empire.npz", "amazon-ratings": "amazon_ratings.npz"}[name]
	if file == "" {
		file = name + ".npz"
	}
	return Entry{
		Name: name, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: metric, Homepage: "https://github.com/yandex-research/heterophilous-graphs", Licence: "MIT (of the repository)",
		Citation: platonovCitation, Folder: "heterophilous", Format: "npz", Known: known,
		Files: []File{fill(heterophilousSums, heterophilousURL, file, 256*mib)},
	}
}

func sageEntry(name, summary, metric string, nodes int, edges int64, features, classes int, maxSize int64, known ...Accuracy) Entry {
	return Entry{
		Name: name, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: metric, Homepage: "http://snap.stanford.edu/graphsage/", Licence: "none stated",
		Citation: sageCitation, Folder: "graphsage", Format: "graphsage", Undirected: true, Known: known,
		Files: []File{{
			Name: name + ".zip", URL: "http://snap.stanford.edu/graphsage/" + name + ".zip",
			MaxSize: maxSize, Unzipped: []string{name + "/" + name + "-G.json"},
		}},
	}
}

// saintFiles are the names on Google Drive of adj_full.npz, feats.npy,
// class_map.json and role.json.
type saintFiles [4]string

func saintEntry(name, summary, metric string, nodes int, edges int64, features, classes int, maxSize int64, ids saintFiles, known ...Accuracy) Entry {
	e := Entry{
		Name: name, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: metric, Homepage: "https://github.com/GraphSAINT/GraphSAINT", Licence: "none stated for the data; MIT (of the repository)",
		Citation: saintCitation, Folder: "graphsaint/" + name, Format: "graphsaint", Known: known,
	}
	for i, file := range []string{"adj_full.npz", "feats.npy", "class_map.json", "role.json"} {
		e.Files = append(e.Files, File{
			Name: file, URL: "https://docs.google.com/uc?export=download&id=" + ids[i] + "&confirm=t", MaxSize: maxSize,
		})
	}
	return e
}

func ogbEntry(name, summary, archive, licence string, nodes int, edges int64, features, classes int, maxSize int64, known ...Accuracy) Entry {
	graph := "/raw/edge.csv.gz"
	if name == "ogbn-papers100M" {
		graph = "/raw/data.npz"
	}
	own := strings.ReplaceAll(name, "-", "_") // the folder name that OGB's own package uses
	return Entry{
		Name: name, Summary: summary, Nodes: nodes, Edges: edges, Features: features, Classes: classes,
		Metric: accuracy, Homepage: "https://ogb.stanford.edu/docs/nodeprop/#" + name, Licence: licence,
		Citation: ogbCitation, Folder: "ogb", Format: "ogb", Undirected: true, Known: known,
		Files: []File{{
			Name: archive + ".zip", URL: "https://snap.stanford.edu/ogb/data/nodeproppred/" + archive + ".zip",
			MaxSize: maxSize, Unzipped: []string{archive + graph, own + graph},
		}},
	}
}

package main

// sets are the configurations: tuning are those by which the plan's constants were chosen, seen those of earlier tables of
// docs/plan.md, whose errors were known when the plan changed, and test those that were not looked at before. Their datasets:
//
//	gnb data convert GNB_DATA/planetoid DATA/cora
//	gnb data convert GNB_DATA/ogbn_arxiv/graphsaint DATA/arxiv --undirected --features random:128
//	gnb data convert … DATA/arxiv16 --undirected --features random:128 --feature-type f16, of the same source
//	gnb partition DATA/arxiv --parts 2 --out DATA/arxiv-parts
//	gnb partition DATA/arxiv --parts 4 --balance train --out DATA/arxiv-parts4
//	gnb partition DATA/arxiv --parts 4 --balance train --no-topology --out DATA/arxiv-parts4-nt
//	productslike --scale 18 --nodes 180000 --seeds 40000 DATA/products
//	gnb partition DATA/products --parts 4 --method fennel --out DATA/products-parts
var sets = map[string][]string{
	"tuning": {
		"cora --model sage --fanout full --hidden 32 --epochs 60",
		"planted?nodes=20000 --model sage --epochs 6",
		"arxiv --model sage --eval none --epochs 4",
		"arxiv --model gcn --hidden 128 --workers 2 --epochs 3",
		"products --model sage --fanout 15,10,5 --batch 512 --hidden 128 --eval none --epochs 2",
		"arxiv --model gat --heads 2 --hidden 32 --eval sampled --epochs 2",
		"planted?nodes=100000 --model gin --workers 4 --epochs 3",
		"cora --model gcn --fanout full --hidden 16 --epochs 100",
		"cora --model gat --fanout full --hidden 64 --heads 8 --epochs 60",
		"arxiv --model sage --fanout 15,10,5 --batch 512 --hidden 128 --epochs 2",
		"arxiv --model sage --fanout 10,10 --workers 2 --eval none --epochs 4",
		"arxiv --model gcn --fanout 10,5 --hidden 64 --epochs 4",
		"arxiv --model gat --fanout 8,8 --heads 4 --hidden 64 --workers 2 --eval sampled --epochs 2",
		"arxiv --model gin --fanout 10,5 --virtual-ranks 2 --eval none --epochs 4",
		"products --model sage --fanout 10,10 --workers 2 --cooperative --eval none --epochs 3",
		"products --model sage --fanout 15,10 --hidden 256 --precision bf16 --epochs 2",
		"planted?nodes=50000 --model sage --fanout 10,10 --norm layer --residual --workers 4 --epochs 4",
		"arxiv --model sage --fanout 8,8 --embedding 64 --eval none --epochs 3",
		"products-parts --model sage --fanout 8,8 --workers 2 --cache 5% --eval none --epochs 3",
		"products --model gatv2 --fanout 6,6 --heads 4 --hidden 64 --eval none --epochs 2",
	},
	"seen": {
		"cora --model gatv2 --fanout full --hidden 32 --heads 4 --epochs 80",
		"rmat?scale=16&degree=8 --model sage --fanout 10,5 --hidden 48 --epochs 4",
		"arxiv16 --model sage --fanout 12,6 --hidden 128 --batch 2048 --eval none --epochs 4",
		"arxiv --model gat --fanout 6,6 --heads 2 --hidden 48 --workers 2 --eval none --epochs 3",
		"arxiv --model gatv2 --fanout 5,5 --heads 2 --hidden 32 --eval sampled --epochs 2",
		"products --model gcn --fanout 8,8 --hidden 96 --eval none --epochs 3",
		"products --model sage --fanout 10,5 --embedding 32 --eval none --epochs 3",
		"arxiv-parts --model sage --fanout 10,10 --workers 2 --cache 10% --eval none --epochs 3",
		"planted?nodes=30000 --model gcn --fanout 15,10 --hidden 32 --workers 4 --threads 1 --epochs 5",
		"arxiv --model sage --fanout 10,5 --hidden 64 --workers 2 --cooperative --epochs 3",
		"cora --model sage --fanout 10,10 --hidden 48 --epochs 60",
		"rmat?scale=15&degree=16 --model gin --fanout 8,8 --hidden 64 --epochs 4",
		"arxiv16 --model gcn --fanout 15,8 --hidden 96 --eval none --epochs 3",
		"arxiv --model gatv2 --fanout 8,4 --heads 4 --hidden 64 --workers 2 --eval none --epochs 2",
		"arxiv --model gat --fanout 10,5 --heads 1 --hidden 64 --eval sampled --epochs 2",
		"products --model sage --fanout 12,8 --hidden 128 --batch 512 --eval none --epochs 2",
		"products --model gcn --fanout 10,5 --embedding 48 --eval none --epochs 3",
		"arxiv-parts --model gcn --fanout 8,8 --workers 2 --cache 20% --eval none --epochs 3",
		"planted?nodes=60000 --model sage --fanout 10,10 --norm batch --workers 4 --threads 1 --epochs 4",
		"arxiv --model sage --fanout 8,8 --hidden 96 --workers 2 --cooperative --eval none --epochs 3",
		"cora --model gin --fanout 8,8 --hidden 40 --epochs 60",
		"rmat?scale=14&degree=20 --model sage --fanout 12,6 --hidden 80 --epochs 6",
		"arxiv16 --model sage --fanout 10,10 --hidden 72 --batch 512 --eval none --epochs 3",
		"arxiv --model gcn --fanout 12,12 --hidden 64 --workers 2 --epochs 3",
		"arxiv --model gatv2 --fanout 7,5 --heads 2 --hidden 48 --eval sampled --epochs 2",
		"products --model gin --fanout 8,6 --hidden 64 --eval none --epochs 3",
		"products --model sage --fanout 6,6 --embedding 40 --eval none --epochs 3",
		"arxiv-parts4 --model gcn --fanout 10,5 --workers 2 --topology divided --eval none --epochs 3",
		"products-parts --model sage --fanout 10,5 --workers 2 --cache 15% --prefetch 3 --eval none --epochs 3",
		"products --model sage --fanout 9,7 --workers 2 --cooperative --eval none --epochs 3",
		"arxiv-parts4-nt --model sage --fanout 8,6 --hidden 96 --workers 2 --eval sampled --epochs 2",
	},
	"test": {
		"arxiv --model sage --fanout 10,10 --epochs 3",
		"arxiv --model sage --fanout 10,10 --workers 2 --epochs 3",
		"arxiv --model gcn --fanout 10,8 --hidden 128 --eval none --epochs 3",
		"arxiv --model gat --fanout 8,5 --heads 4 --hidden 64 --eval sampled --epochs 2",
		"cora --model gcn --fanout full --hidden 16 --epochs 100",
		"arxiv --model sage --fanout 10,5 --features disk --cache 0 --eval none --epochs 3",
		"arxiv --model sage --fanout 10,5 --workers 2 --features disk --cache 10% --eval none --epochs 3",
		"arxiv --model sage --fanout 10,10 --workers 4 --threads 1 --eval none --epochs 3",
		"planted?nodes=40000 --model gcn --fanout 10,10 --workers 4 --epochs 5",
		"arxiv --model sage --fanout 10,8 --workers 2 --cooperative --eval none --epochs 3",
		"arxiv-parts --model sage --fanout 10,8 --workers 2 --cache 10% --eval none --epochs 3",
		"arxiv-parts --model sage --fanout 10,5 --workers 2 --topology divided --eval none --epochs 3",
		"arxiv --model sage --fanout 10,5 --embedding 32 --eval none --epochs 3",
	},
}

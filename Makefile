# Commands for a checkout. Each target installs what it needs: a private Python in .venv, tools in
# .bin, results in build. A second run starts in seconds.

SHELL := /bin/bash

.PHONY: help check lint test race fuzz mutate bench bench-peers soak gpu-bundle gpu-check kernels fixtures demo lab notebooks latency pictures release outdated clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{ printf "make %-11s %s\n", $$1, $$2 }'

check: ## build, vet, quick linters and quick tests
	@bash scripts/check.sh

lint: ## every linter, and the format of every file; "make check" runs the quick ones
	@bash scripts/lint.sh

test: ## every test, notebooks in a real kernel included
	@bash scripts/test.sh

race: ## tests of what runs at the same time, under the race detector
	@bash scripts/test.sh race

fuzz: ## every fuzz target for FUZZTIME (default 1m)
	@bash scripts/fuzz.sh

mutate: ## a sample of small defects, to see which the tests find; N (default 40), SEED, PKG
	@bash scripts/mutate.sh

bench: ## benchmarks, and their share of the machine's limits; BENCH (a pattern), COUNT (default 1), PKG
	@bash scripts/bench.sh

bench-peers: ## compare with PyG, DGL, GraphBolt, PyTorch and OpenBLAS; ARGS="--quick --only sample,gemm"; see bench/README.md
	@bash scripts/bench-peers.sh $(ARGS)

soak: ## every fault, long training and large file, once or for SOAK (default 10m)
	@bash scripts/soak.sh

gpu-bundle: ## pack "make gpu-check" for a machine with a GPU and without Go
	@bash scripts/gpu-bundle.sh

gpu-check: ## tests, training and measurements on this machine's GPU, kept in bench/results; ARGS="-only tests"
	@bash scripts/gpu-check.sh $(ARGS)

kernels: ## compile internal/cuda/kernels to PTX, without CUDA; ARGS=--limits updates the limits
	@bash scripts/kernels.sh $(ARGS)

fixtures: ## recompute test data with PyTorch Geometric and TensorBoard; needs 1 GB
	@bash scripts/fixtures.sh

demo: ## train in a notebook, and save it executed and as an HTML page
	@bash scripts/demo.sh

lab: ## start JupyterLab with this checkout's kernel and notebooks; ARGS="--port 9000 --no-browser"
	@bash scripts/lab.sh $(ARGS)

notebooks: ## execute all notebooks and tutorials and save their outputs; ARGS=notebooks/sweep.ipynb selects
	@bash scripts/notebooks.sh $(ARGS)

latency: ## waiting times in a notebook, compared with their goals; ARGS="--repeats 5 --json FILE"
	@bash scripts/latency.sh $(ARGS)

pictures: ## retake the pictures in docs from JupyterLab
	@bash scripts/pictures.sh

release: ## static binaries of gnb for Linux and macOS, in build/dist; publishes nothing
	@bash scripts/release.sh

outdated: ## list dependencies that have a newer release
	@bash scripts/outdated.sh

clean: ## remove everything that other targets made
	rm -rf .venv .venv-cuda .venv-peers .venv-peers-newest .bin .cluster .cluster.lock build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What one does with a checkout. Each target sets up what it needs: a private Python in .venv, tools
# in .bin, results in build. A second run starts in seconds.

SHELL := /bin/bash

.PHONY: help check test fuzz bench bench-peers soak gpu-bundle gpu-check kernels fixtures demo lab notebooks latency pictures release outdated clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{ printf "make %-11s %s\n", $$1, $$2 }'

check: ## build, vet, lint and quick tests, in under 90 s
	@bash scripts/check.sh

test: ## every test, notebooks in a real kernel and the race detector included
	@bash scripts/test.sh

fuzz: ## every fuzz target for FUZZTIME (default 1m)
	@bash scripts/fuzz.sh

bench: ## the share of the machine's limits reached, and benchmarks; BENCH (a pattern), COUNT (default 1) and PKG choose
	@bash scripts/bench.sh

bench-peers: ## PyG, DGL, GraphBolt, PyTorch and OpenBLAS beside it; ARGS="--quick --only sample,gemm"; see bench/README.md
	@bash scripts/bench-peers.sh $(ARGS)

soak: ## the tests that start processes, over and over for SOAK (default 10m); then a newcomer's clone, whole
	@bash scripts/soak.sh

gpu-bundle: ## pack what "make gpu-check" runs, for a machine with a GPU and no Go
	@bash scripts/gpu-bundle.sh

gpu-check: ## tests, training and measurements on this machine's GPU, kept in bench/results; ARGS="-only tests"
	@bash scripts/gpu-check.sh $(ARGS)

kernels: ## the PTX of cuda/kernels, from its sources; needs no CUDA. ARGS=--limits takes what they use as limits
	@bash scripts/kernels.sh $(ARGS)

fixtures: ## what PyTorch Geometric computes and TensorBoard reads, for the tests; needs 1 GB
	@bash scripts/fixtures.sh

demo: ## train in a notebook; leaves it executed, and as an HTML page
	@bash scripts/demo.sh

lab: ## JupyterLab with the kernel of this checkout and its notebooks; ARGS="--port 9000 --no-browser"
	@bash scripts/lab.sh $(ARGS)

notebooks: ## execute all notebooks and tutorials, and keep their outputs in them; ARGS=notebooks/sweep.ipynb chooses
	@bash scripts/notebooks.sh $(ARGS)

latency: ## what somebody waits for in a notebook, beside what we aim at; ARGS="--repeats 5 --json FILE"
	@bash scripts/latency.sh $(ARGS)

pictures: ## the pictures of panel, monitor, sweep and scaling in docs, as JupyterLab shows them
	@bash scripts/pictures.sh

release: ## static binaries of gnb for Linux and macOS, in build/dist; publishes nothing
	@bash scripts/release.sh

outdated: ## list dependencies that have a newer release
	@bash scripts/outdated.sh

clean: ## remove what the other targets made
	rm -rf .venv .venv-cuda .venv-peers .bin build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

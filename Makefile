# Every target sets up what it needs first: run them in any order, and again at no cost.
# The set-up itself is tools/bootstrap.py; `make help` lists what there is.

PYTHON ?= python3
ATE    := .venv/bin/ate
SETUP  := $(PYTHON) tools/bootstrap.py
CARGO  := $(PYTHON) tools/toolchain.py
RUST   := -p atenet-engine -p atenet-net

.DEFAULT_GOAL := help
.PHONY: help demo up down test node lint fmt proto docs bench runsc images setup

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## set up, start a system of its own, wake real software through the whole path (DATAPLANE=agentgateway: the other one), report, clean up
	@$(SETUP) system venv engine demo gvisor
	@.venv/bin/python -m atenet.local.demo $(if $(DATAPLANE),--dataplane $(DATAPLANE))

up: ## set up and leave the whole system running on this machine (ATE_HOME says where)
	@$(SETUP) system venv engine gvisor
	@$(ATE) up --allow-host-path $(CURDIR)/examples $(if $(DATAPLANE),--dataplane $(DATAPLANE))

down: ## stop what `make up` started
	@$(SETUP) venv engine
	@$(ATE) down

test: ## set up and run every test: cargo test, then pytest
	@$(SETUP) system venv engine demo test
	@echo "==> cargo test"
	@$(CARGO) test --release -q $(RUST)
	@echo "==> pytest"
	@.venv/bin/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

node: ## a real Kubernetes node (kubelet, containerd) in namespaces of its own, and the whole path on it; root; minutes of building, once
	@$(SETUP) system venv engine node
	@.venv/bin/python -m tests.real_node $(NODE_ARGS)

lint: ## formats, lints and types: ruff, mypy, stubtest, cargo fmt, clippy
	@$(SETUP) system venv engine
	@$(PYTHON) tools/lint.py

fmt: ## format Python and Rust in place
	@$(SETUP) venv
	@.venv/bin/ruff check --fix -q . || true
	@.venv/bin/ruff format .
	@$(CARGO) fmt --all

proto: ## regenerate python/atenet/proto from proto/
	@$(SETUP) venv
	@.venv/bin/python tools/generate_proto.py

docs: ## regenerate the pages that are generated
	@$(SETUP) venv engine
	@.venv/bin/python tools/generate_cli_docs.py
	@.venv/bin/python tools/generate_roles_docs.py
	@.venv/bin/python tools/generate_setup_docs.py
	@.venv/bin/python -m tests.conformance.parity
	@.venv/bin/python tools/generate_agentgateway_docs.py

bench: ## take the measures: all, or one with ONLY=P-21
	@$(SETUP) system venv engine demo bench
	@.venv/bin/python -m benchmarks $(if $(ONLY),--only $(ONLY))

runsc: ## gVisor's runsc, which keeps actors' memory: built once, with Go, into a cache outside the tree
	@$(SETUP) runsc

images: ## container images of all parts, with buildah, podman or docker (IMAGE_REGISTRY, IMAGE_TAG; IMAGE_ARCHIVE=FILE: saved there, too; GVISOR=yes: with runsc)
	@$(PYTHON) tools/images.py

setup: ## only set up
	@$(SETUP) system venv engine demo gvisor

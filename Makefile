# make demo        set up, then record, trace and restore a small training workflow; then a pipeline; then open
#                  what was recorded in the web app (without a terminal: print its address)
# make example-mnist, make example-cifar10   set up TensorFlow, fetch the images, train in every configuration
# make example-placement   one application at the edge, in the cloud, and split: on the cluster of make cluster (as root)
# make test        set up, then run the tests
# make web         build the web app into src/clew/_web (needs Node.js 20.19 or newer, and npm)
# make check       lint, types, layers, and the witness compiled with warnings as errors
# make test-heavy  the tests that take minutes or gigabytes, and many examples of each property
# make cluster     bring up a Kubernetes of two nodes on this machine (as root); make cluster-down removes it
# make test-cluster  the tests on a cluster: the one KUBECONFIG names, else the above
# make dist        build the wheels and the sdist, and install the wheel in a container without a compiler (as root)
# make test-aarch64  the aarch64 wheel in an emulated machine, compared with x86-64; takes minutes
# make pictures    run the sessions and fill the project that docs/images shows, and draw them again
# make bench       every figure of docs/benchmarks.md, with the peers beside it
# make native      compile the witness in place, for development
# make clean       remove what the above made, but for .venv

PYTHON ?= python3
# Tests wait for processes half of the time.
JOBS ?= $(shell n=$$((2 * $$(nproc))); echo $$((n < 8 ? n : 8)))

export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport CLEW_PROJECT CLEW_GRAPH CLEW_SERVER CLEW_TOKEN CLEW_REDACT
# Clew is started thousands of times: it is compiled once.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/.clew-ready
EXAMPLES := $(wildcard examples/*/requirements.txt)
TENSORFLOW := build/tensorflow
NOTEBOOKS := build/notebooks
S3_CLIENTS := build/s3-clients
# A worker takes tests from the longest queue when its own is empty; until then, a file's tests stay together
# and share its fixtures.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help web web-types check-web dist pictures demo example-mnist example-cifar10 example-placement test check test-heavy bench native clean packages-build packages-test packages-bench \
	packages-cluster packages-aarch64 cluster cluster-down test-cluster test-aarch64

help:
	@sed -n 's/^# make /make /p' Makefile

packages-build packages-test packages-bench packages-cluster packages-aarch64: packages-%:
	@PYTHON=$(PYTHON) tools/debian-packages $*

# Everything Python: pinned, and with this very source installed to be edited.
$(READY): pyproject.toml constraints.txt setup.py $(EXAMPLES) | packages-build
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt setuptools
	$(BIN)/pip install -q -c constraints.txt --no-build-isolation -e '.[postgres,dev]' \
		$(EXAMPLES:%=-r %)
	touch $@

native: $(READY)
	@$(BIN)/python native/build.py src/clew/_native
	@rm -f src/clew/_native/not-built.txt
# Byte code, too: a task is not reused if the first run wrote byte code that the second one finds.
	@$(BIN)/python -m compileall -q -j 0 src/clew

# The web app: its packages are pinned in web/package-lock.json.
NODE_MODULES := web/node_modules/.package-lock.json
WEB_FILES := $(shell find web/src web/public -type f -not -name schema.d.ts) web/index.html web/vite.config.ts web/tsconfig.json
WEB_TYPES := web/src/api/schema.d.ts

$(NODE_MODULES): web/package.json web/package-lock.json
	@tools/check-node
	cd web && npm ci --no-progress
	touch $@

# TypeScript types of the server's documents and routes, from its OpenAPI document. The file is replaced
# only when it differs, so that nothing is built again for nothing.
web-types: $(READY) $(NODE_MODULES)
	@mkdir -p build
	@$(BIN)/python -m tools.openapi > build/openapi.json
	@cd web && npx openapi-typescript ../build/openapi.json -o ../build/schema.d.ts >../build/openapi-typescript.log || { cat ../build/openapi-typescript.log; exit 1; }
	@cmp -s build/schema.d.ts $(WEB_TYPES) || cp build/schema.d.ts $(WEB_TYPES)

src/clew/_web/index.html: $(NODE_MODULES) $(WEB_FILES) $(wildcard $(WEB_TYPES))
	cd web && npm run --silent build

web: web-types
	@$(MAKE) --no-print-directory src/clew/_web/index.html

check-web: web-types
	cd web && npm run --silent check && npm run --silent test

build/taxi/trips.csv: examples/taxi/download.py | $(READY)
	$(BIN)/python $< $@

demo: native web build/taxi/trips.csv
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/training/demo.sh
	@rm -rf build/demo
	@CLEW_DEMO="$(CURDIR)/build/demo" PATH="$(CURDIR)/$(BIN):$$PATH" examples/taxi/demo.sh build/taxi/trips.csv
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/open-app.sh build/demo

$(TENSORFLOW)/.ready: examples/mnist/requirements-tensorflow.txt constraints.txt
	$(PYTHON) -m venv $(TENSORFLOW)
	$(TENSORFLOW)/bin/pip install -q -c constraints.txt -r $<
	touch $@

# JupyterLab and TensorBoard, which the tests of notebooks need; apart, since Clew works without them.
$(NOTEBOOKS)/.ready: tests/requirements-notebooks.txt constraints.txt
	$(PYTHON) -m venv $(NOTEBOOKS)
	$(NOTEBOOKS)/bin/pip install -q -c constraints.txt -r $<
	touch $@

# Clients of S3, whose dependencies are older than ours.
$(S3_CLIENTS)/.ready: tests/requirements-s3.txt
	$(PYTHON) -m venv $(S3_CLIENTS)
	$(S3_CLIENTS)/bin/pip install -q -r $<
	touch $@

build/%/data: examples/%/download.sh
	rm -rf $@.part
	$< $@.part
	mv $@.part $@

# What was trained before is reused: an interrupted grid goes on. GIVEN='-p epochs=[10]' takes a part of it.
example-mnist example-cifar10: example-%: native $(TENSORFLOW)/.ready | build/%/data
	@cd build/$* && PATH="$(CURDIR)/$(TENSORFLOW)/bin:$(CURDIR)/$(BIN):$$PATH" \
		clew pipeline run ../../examples/$*/pipeline.py $(GIVEN)

example-placement: cluster
	@$(PYTHON) -m tools.cluster image docker.io/clew/taxi-placement:1 examples/placement/Containerfile
	@mkdir -p build/placement
	@KUBECONFIG="$(CURDIR)/.cluster/kubeconfig" \
		PATH="$(CURDIR)/$(BIN):$$($(PYTHON) -c 'from tools.cluster.binaries import search_path as path; print(path())'):$$PATH" \
		examples/placement/run.sh --results build/placement $(GIVEN)

test: packages-test native web $(NOTEBOOKS)/.ready $(S3_CLIENTS)/.ready
	$(PYTEST)

test-heavy: packages-test native web $(NOTEBOOKS)/.ready $(S3_CLIENTS)/.ready $(TENSORFLOW)/.ready
	$(PYTEST) -m '(heavy or hypothesis) and not cluster' --hypothesis-profile full --timeout 7200

pictures: native web
	@$(BIN)/python -m tools.terminal_pictures
	@$(BIN)/python -W ignore -m tools.web_pictures

dist: $(READY) web packages-cluster
	rm -rf dist
	$(BIN)/python -m build -q --no-isolation --outdir dist .
	_PYTHON_HOST_PLATFORM=linux-aarch64 $(BIN)/pip wheel -q --no-deps --no-build-isolation -w dist dist/*.tar.gz
	$(PYTHON) -m tools.wheel_check dist

test-aarch64: packages-aarch64 native
	$(PYTEST) -n 0 -m aarch64 --timeout 3600 tests/aarch64

cluster: packages-cluster web
	@$(PYTHON) -m tools.cluster up

cluster-down:
	@$(PYTHON) -m tools.cluster down

# These tests mostly wait for Pods.
test-cluster: JOBS = 4
test-cluster: packages-test packages-cluster $(if $(KUBECONFIG),,cluster) native web
	KUBECONFIG=$(or $(KUBECONFIG),$(CURDIR)/.cluster/kubeconfig) \
		$(PYTEST) --dist loadgroup -m 'cluster and not heavy' --timeout 1800 tests/cluster

check: $(READY) check-web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python native/build.py --strict build/strict
	$(BIN)/python native/build.py --strict --machine aarch64 build/strict-aarch64

bench: packages-bench native
	@for figure in bench/[a-z]*.py; do \
		echo "== $$figure"; \
		PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python $$figure || exit; \
	done

clean:
	rm -rf build dist src/clew/_native src/clew/_web web/node_modules $(WEB_TYPES) src/*.egg-info .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis .import_linter_cache
	find src tests bench examples native -name __pycache__ -prune -exec rm -rf {} +
	rm -f $(READY)

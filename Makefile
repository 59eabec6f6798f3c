# Two commands do everything, the virtual environment included: make reproduce, make test. make lab opens the notebooks.
# Each installs what it needs into .venv: the package; .tests: also notebooks, provers, tests; .all: also transformers.
PYTHON ?= python3
SCALE ?= quick
OUT ?= figures
VENV := .venv
CLASS := .venv-course
FLOWER := .venv-flower
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest -n 2 --dist loadscope --no-loadscope-reorder
PIP := --quiet --no-compile  # most of 18,000 files are never imported; those that are get compiled then
export OMP_NUM_THREADS := 1
export PYTHONHASHSEED := 0
# kernels, workers and commands are many short processes; each would compile the package again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce test test-all lab notebooks book book-check course-check flower test-flower format bench proofs proofs-check proofs-kron

reproduce: $(VENV)/.installed
	$(RUN) -m fedtheory reproduce --scale $(SCALE) --out $(OUT)

test: $(VENV)/.tests
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	mkdir -p build; $(VENV)/bin/pyright > build/pyright.log & types=$$!; \
	$(PYTEST) --nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 120 \
		tests notebooks; tested=$$?; \
	wait $$types; typed=$$?; cat build/pyright.log; exit $$((tested + typed))

# make test with transformers, so also notebook 09 and its tests; then the tests that are marked full.
test-all: $(VENV)/.all
	$(MAKE) test
	$(PYTEST) -m full tests

lab: $(VENV)/.tests
	$(VENV)/bin/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks

notebooks: $(VENV)/.all
	$(RUN) notebooks/build.py
	$(RUN) docs/book/primer.py

book: $(VENV)/.book
	$(RUN) docs/book/build.py

book-check: $(VENV)/.book
	$(RUN) docs/book/check.py

course-check: $(CLASS)/.installed
	$(CLASS)/bin/python -m pytest tests/test_course.py

flower: $(FLOWER)/.installed

test-flower: $(FLOWER)/.installed
	$(FLOWER)/bin/python -m pytest tests/test_flower.py

format: $(VENV)/.tests
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(VENV)/.installed
	$(RUN) benchmarks/rounds.py

proofs: proofs/Makefile.coq
	$(MAKE) -C proofs -f Makefile.coq -j 2
	$(PYTHON) proofs/tie.py statements

proofs-check: proofs
	cd proofs && coqchk -silent -o -Q . Fedtheory $(addprefix Fedtheory.,$(notdir $(basename $(wildcard proofs/*.vo))))

proofs-kron:
	cd proofs && coqc -w none -Q . Fedtheory Kron.v

proofs/Makefile.coq: proofs/_CoqProject
	@command -v coq_makefile > /dev/null || { \
		echo "Coq is absent. On Debian or Ubuntu: apt-get install coq (8.16 or later). Elsewhere: https://coq.inria.fr/download"; exit 1; }
	cd proofs && coq_makefile -f _CoqProject -o Makefile.coq

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'fedtheory needs Python 3.11 or later: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install $(PIP) --constraint constraints.txt --editable .
	touch $@

$(VENV)/.tests: $(VENV)/.installed
	$(RUN) -m pip install $(PIP) --constraint constraints.txt --editable '.[notebooks,theory,test]'
	touch $@

$(VENV)/.all: $(VENV)/.installed
	$(RUN) -m pip install $(PIP) --constraint constraints.txt --editable '.[notebooks,theory,llm,test]'
	touch $(VENV)/.tests $@

# The book is made by importing the package, so its extra goes into the same environment and not into a second one.
$(VENV)/.book: $(VENV)/.all
	$(RUN) -m pip install --quiet --constraint constraints.txt --editable '.[book]'
	touch $@

# nbgrader brings a notebook server's extensions, which would change `make lab`: it has an environment of its own, which
# takes from the first what is there already, but for two packages, whose templates and pages lie beside Python's folders.
$(CLASS)/.installed: $(VENV)/.all
	$(PYTHON) -m venv $(CLASS)
	$(RUN) -c "import site; print(f'import site; site.addsitedir({site.getsitepackages()[0]!r})')" \
		> $$($(CLASS)/bin/python -c "import site; print(site.getsitepackages()[0])")/first.pth
	$(CLASS)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[teach]'
	$(CLASS)/bin/python -m pip install --quiet --constraint constraints.txt --ignore-installed --no-deps nbconvert jupyterlab
	touch $@

# Flower wants an older packaging, rich and typer than the first environment has: it has one of its own.
$(FLOWER)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'fedtheory needs Python 3.11 or later: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(FLOWER)
	grep -v '^packaging=' constraints.txt > $(FLOWER)/constraints.txt
	$(FLOWER)/bin/python -m pip install $(PIP) --constraint $(FLOWER)/constraints.txt --editable '.[flower]' pytest hypothesis
	touch $@

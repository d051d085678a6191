# For people who do not want to know CMake. Two commands set everything up: make demo and make test.
# Both install what they lack through apt (as root or through sudo), and say so first.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SECONDS_EACH ?= 60
PROGRAM := build/release/bin/oomscope
DEMO := tests/data/demo_oom.pickle.zst
DATA ?= ../shared/data

.PHONY: help demo examples web test build bench accuracy install mutants fuzz tidy format clean

help:
	@echo 'make demo      install what is missing, build, and explain a real out-of-memory recording'
	@echo 'make examples  example reports in build/examples/, of the recordings in $(DATA) where they are there'
	@echo 'make test      install what is missing, build, and run the tests and checks'
	@echo 'make build     the program: $(PROGRAM)'
	@echo 'make bench     build and run the benchmarks of bench/'
	@echo 'make accuracy  write docs/accuracy.md: what fit predicts against what was measured (needs the recordings)'
	@echo 'make install   the program, the library and its headers (PREFIX=$(PREFIX), DESTDIR=)'
	@echo 'make mutants   change the engine in some fifty small ways; each must be noticed (long)'
	@echo 'make web       build web/dist/report.html, the viewer that the program carries (needs Node)'
	@echo 'make fuzz      libFuzzer on each reader, SECONDS_EACH=$(SECONDS_EACH) (needs clang-14)'
	@echo 'make tidy      clang-tidy on every file (needs clang-tidy-14)'
	@echo 'make format    lay the sources out (needs clang-format-14)'
	@echo 'make clean     remove build/'

demo:
	@tools/install_packages.sh build
	@$(MAKE) --no-print-directory build
	@echo '$$ oomscope $(DEMO)'
	@$(PROGRAM) $(DEMO)
	@echo
	@echo 'The program: $(CURDIR)/$(PROGRAM) (one file; copy it where you like)'
	@$(PROGRAM) report $(DEMO) -o build/demo.html > /dev/null
	@echo 'The same to look at: $(CURDIR)/build/demo.html'

examples: build
	@tools/make_examples.sh $(PROGRAM) '$(DATA)' build/examples

web:
	cd web && npm ci --ignore-scripts && npm run build

test:
	@tools/install_packages.sh build test
	@{ command -v node && command -v npm && command -v chromium; } > /dev/null || tools/install_packages.sh web || true
	@JOBS=$(JOBS) tools/run_tests.sh

build:
	@log=$$(cmake --preset release 2>&1) || { echo "$$log"; exit 1; }
	cmake --build --preset release --parallel $(JOBS)

bench:
	@tools/install_packages.sh build bench
	cmake --preset release -DOOMSCOPE_BENCH=ON > /dev/null
	cmake --build build/release --target bench --parallel $(JOBS)
	@tools/run_bench.sh build/release/bin

accuracy: build
	python3 tools/score_fit.py --program $(PROGRAM) --pairs --write docs/accuracy.md

install:
	cmake --preset release > /dev/null
	cmake --build build/release --target oomscope oomscope_library --parallel $(JOBS)
	DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

mutants: build
	python3 tools/mutants.py

fuzz:
	cmake --preset fuzz -DOOMSCOPE_FUZZ_SECONDS=$(SECONDS_EACH) > /dev/null
	cmake --build --preset fuzz --parallel $(JOBS)
	ctest --test-dir build/fuzz -L fuzz --output-on-failure

tidy:
	cmake --preset tidy > /dev/null
	cmake --build --preset tidy --parallel $(JOBS)

format:
	python3 tools/check_format.py --fix

clean:
	rm -rf build

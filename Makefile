# One word does each thing, on a fresh machine too: what is missing is installed first (Debian or Ubuntu, as root).
#   make demo    build, reproduce the fat-tree study, show the policy loop on real kernels (as root); leave HTML reports
#   make test    every test          make lint    formatting, lints, house rules
#   make bench   packet-hops/s       make build   target/release/opentcp
#   make fuzz    property tests with new random cases

CARGO ?= cargo
SHELL := /bin/bash

.PHONY: build demo test lint bench fuzz clean setup setup-tests
.DEFAULT_GOAL := build

setup:
	@tools/setup

setup-tests:
	@tools/setup test

build: setup
	$(CARGO) build --release --locked -p cli

demo: build
	target/release/opentcp reproduce cfi16
	target/release/opentcp demo

# Release with assertions: simulations are quick and every invariant is checked.
test: setup-tests
	$(CARGO) test --profile checked --locked --workspace

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile checked --locked --workspace --all-targets -- -D warnings
	tools/tidy
	tools/deny

bench: setup
	$(CARGO) run --release --locked -p bench

fuzz: setup
	tools/fuzz

clean:
	$(CARGO) clean

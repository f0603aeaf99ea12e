# One word does each thing, on a fresh machine too: what is missing is installed first (Debian or Ubuntu, as root).
#   make demo    build, reproduce the fat-tree study, show the policy loop on real kernels (as root); leave HTML reports
#   make test    every test          make lint    formatting, lints, house rules
#   make bench   packet-hops/s       make build   target/release/opentcp
#   make install PREFIX=/usr/local   the command, its man pages and completions
#   make python  the Python package's wheel, in target/wheels
#   make playground  the simulator in a web page, in target/playground
#   make package target/debian/*.deb, for Debian and Ubuntu          make image   an OCI image, by podman
#   make book    the documentation as a book, in target/book          make reference   writes its generated parts
#   make fuzz    property tests with new random cases

CARGO ?= cargo
SHELL := /bin/bash

.PHONY: build install package image python playground book reference demo test lint bench fuzz clean setup setup-tests
.DEFAULT_GOAL := build

setup:
	@tools/setup

setup-tests:
	@tools/setup test

build: setup
	$(CARGO) build --release --locked -p cli

PREFIX ?= /usr/local
SHARE := $(DESTDIR)$(PREFIX)/share

# Builds nothing, so that root needs no compiler: run `make build` first.
install:
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin target/release/opentcp target/release/opentcp-agent
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	target/release/opentcp man $(SHARE)/man/man1
	target/release/opentcp completions bash >$(SHARE)/bash-completion/completions/opentcp
	target/release/opentcp completions zsh >$(SHARE)/zsh/site-functions/_opentcp
	target/release/opentcp completions fish >$(SHARE)/fish/vendor_completions.d/opentcp.fish

package: build
	tools/package

image: build
	tools/image

# For Python 3.11 or newer on any Linux as old as this one.
python: setup-tests
	tools/python wheel

# Static files, for any web server.
playground: setup
	tools/playground install
	tools/playground

# With its links checked. The first time it builds mdBook, which takes a minute or two.
book:
	tools/book

# What the code says about itself: options, variables, columns, errors, metrics, the Python API.
reference:
	OPENTCP_WRITE_DOCS=1 $(CARGO) test --profile checked --locked -p cli --lib --test cli reference
	OPENTCP_WRITE_DOCS=1 tools/book

demo: build
	target/release/opentcp reproduce cfi16
	target/release/opentcp demo

# Release with assertions: simulations are quick and every invariant is checked.
test: setup-tests
	tools/test

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile checked --locked --workspace --all-targets --features parsers/libfuzzer -- -D warnings
	tools/tidy
	tools/deny

bench: setup
	$(CARGO) run --release --locked -p bench

fuzz: setup
	tools/fuzz

clean:
	$(CARGO) clean

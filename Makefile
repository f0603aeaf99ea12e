# One word does each thing, on a fresh machine too: what is missing is installed first (Debian or Ubuntu, as root).
#   make demo    build, reproduce the fat-tree study, show the policy loop on real kernels (as root); leave HTML reports
#   make test    every test          make lint    formatting, lints, house rules
#   make bench   packet-hops/s       make build   target/release/opentcp, quickly built
#   make dist    target/dist/opentcp, as it is installed: small, and a few per cent faster
#   make install PREFIX=/usr/local   that, its man pages and completions
#   make python  the Python package's wheel, in target/wheels
#   make playground  the simulator in a web page, in target/playground
#   make package target/debian/*.deb, for Debian and Ubuntu          make image   an OCI image, by podman
#   make book    the documentation as a book, in target/book          make reference   writes its generated parts
#   make fuzz    property tests with new random cases

CARGO ?= cargo
SHELL := /bin/bash

.PHONY: build dist install package image python playground book reference demo test lint bench fuzz clean setup setup-tests
.DEFAULT_GOAL := build

setup:
	@tools/setup

setup-tests:
	@tools/setup test

build: setup
	$(CARGO) build --release --locked -p cli

# What `make install` takes, and when its build began.
TARGET := $(or $(CARGO_TARGET_DIR),target)
DIST := $(TARGET)/dist
dist: setup
	@mkdir -p $(DIST) && touch $(DIST)/.begun
	$(CARGO) build --profile dist --locked -p cli
	@mv $(DIST)/.begun $(DIST)/.built

PREFIX ?= /usr/local
SHARE := $(DESTDIR)$(PREFIX)/share
SOURCES := Cargo.toml Cargo.lock bpf cc crates policies scenarios

# Builds nothing, so that root needs no compiler, and no file of the build is root's.
install:
	@[ -e $(DIST)/.built ] && [ -z "$$(find $(SOURCES) -type f -newer $(DIST)/.built -print -quit)" ] || \
		{ echo "$(DIST)/opentcp is missing, or older than its sources: run \`make dist\` first" >&2; exit 2; }
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(DIST)/opentcp $(DIST)/opentcp-agent
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(DIST)/opentcp man $(SHARE)/man/man1
	$(DIST)/opentcp completions bash >$(SHARE)/bash-completion/completions/opentcp
	$(DIST)/opentcp completions zsh >$(SHARE)/zsh/site-functions/_opentcp
	$(DIST)/opentcp completions fish >$(SHARE)/fish/vendor_completions.d/opentcp.fish

package: dist
	tools/package

image: dist
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
	$(TARGET)/release/opentcp reproduce cfi16
	$(TARGET)/release/opentcp demo

# Release with assertions: simulations are quick and every invariant is checked.
test: setup-tests
	tools/test

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile checked --locked --workspace --all-targets --features parsers/libfuzzer -- -D warnings
	tools/tidy
	tools/deny

bench: setup
	$(CARGO) run --profile dist --locked -p bench

fuzz: setup
	tools/fuzz

clean:
	$(CARGO) clean

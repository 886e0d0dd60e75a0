# make check gates a change. make perf and make soak are run, and seen, before a claim is made.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c

GO       ?= go
FUZZTIME ?= 30s

STEPS     := gofmt tidy vet fix staticcheck lint race paths bench cross $(if $(wildcard lab/go.mod),lab)
PLATFORMS := linux/amd64 linux/arm64 linux/386 linux/arm linux/riscv64 \
             darwin/arm64 freebsd/amd64 openbsd/amd64 netbsd/amd64 windows/amd64

.PHONY: help check perf soak api fmt $(STEPS)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' Makefile

check: ## all of the steps below that gate a change, one after the other
	@for s in $(STEPS); do \
		printf '== %s\n' $$s; t=$$SECONDS; \
		$(MAKE) --no-print-directory $$s || { printf 'make check: step %s failed\n' $$s >&2; exit 1; }; \
		printf '== %s: %d s\n' $$s $$((SECONDS - t)); \
	done

gofmt: ## step: no file that gofmt would change
	@out=$$(gofmt -l .); [[ -z $$out ]] || { printf 'not in the form of gofmt (make fmt):\n%s\n' "$$out" >&2; exit 1; }

tidy: ## step: go.mod and go.sum name what is imported, no more
	@$(GO) mod tidy -diff

vet: ## step: go vet, also of the files for make perf
	@$(GO) vet ./...
	@$(GO) vet -tags perf ./...

fix: ## step: nothing that go fix would modernise
	@$(GO) fix -diff ./...

staticcheck: ## step: staticcheck, as pinned in tools/go.mod
	@$(GO) tool -modfile=tools/go.mod staticcheck -tags perf ./...

lint: ## step: the house rules
	@$(GO) test -count=1 ./internal/lint

race: ## step: all tests with the race detector, in random order
	@$(GO) test -race -shuffle=on -timeout 5m ./...

paths: ## step: the tests of sockets and commands, with each fast path switched off
	@for off in gso gro mmsg; do \
		printf '%s\n' $$off; \
		WEIR_DISABLE=$$off $(GO) test -count=1 -shuffle=on -timeout 2m . ./cmd/... ./dgram ./weirhttp ./weirtest || exit 1; \
	done

bench: ## step: each benchmark once, so that it keeps running
	@$(GO) test -run '^$$' -bench . -benchtime 1x ./...

cross: ## step: go vet for each platform in PLATFORMS
	@for p in $(PLATFORMS); do \
		printf '%s\n' $$p; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || { printf 'make cross: %s failed\n' $$p >&2; exit 1; }; \
	done

lab: ## step: vet and tests of lab, a module of its own
	@cd lab && $(GO) vet -tags perf ./... && $(GO) test ./...

perf: ## measured claims: tests named Perf, one package at a time, without the race detector
	@$(GO) test -tags perf -p 1 -count=1 -v -run Perf ./...
	@cd lab && $(GO) test -tags perf -p 1 -count=1 -timeout 60m -v -run Perf ./...

soak: ## long oracles and whole sweeps: tests named Soak; then each fuzz target for FUZZTIME (30s)
	@$(GO) test -tags perf -race -p 1 -count=1 -timeout 60m -run Soak ./...
	@$(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, f[i]; n = 0 }' | { \
		n=0; \
		while read -r pkg fuzz; do \
			printf '== %s %s\n' "$$pkg" "$$fuzz"; n=$$((n + 1)); \
			$(GO) test -run '^$$' -fuzz "^$$fuzz\$$" -fuzztime $(FUZZTIME) "$$pkg" || { printf 'make soak: %s failed\n' "$$fuzz" >&2; exit 1; }; \
		done; \
		printf '== %d fuzz targets\n' $$n; \
	}

api: ## rewrite the golden API texts in docs/api
	@$(GO) test -count=1 ./internal/lint -run '^TestAPI$$' -update

fmt: ## gofmt all files
	@gofmt -w .

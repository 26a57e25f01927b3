# The front door: a bare `make` shows what can be done. CMake and Ninja do the work (CMakeLists.txt,
# CMakePresets.json), the scripts in tools/ and tests/ do the rest.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help build quick test verify examples install sim model mutants coverage lint format clean \
	conformance bench chaos jepsen fuzz demo deb servers bindings evidence site

help:
	@echo 'baton: leader election on the store you already run'
	@echo
	@echo 'Work:'
	@echo '  make demo       three candidates: kill, freeze, resign (STORE=redis|consul|...)'
	@echo '  make build      build into build/debug; the command is build/baton (PRESET=...)'
	@echo '  make quick      the edit loop: debug build, unit tests, stories'
	@echo '  make test       what everybody runs: install what is missing, build, test, prove'
	@echo '  make verify     the rest: sanitizers, faults, chaos, mutants, packages, proofs'
	@echo '                  (TIMES=n runs either of them n times, and says what failed when)'
	@echo '  make servers    servers that no distribution has: built once, with Go and npm'
	@echo '  make examples   build the programs of examples/ into build/release/examples'
	@echo '  make install    command, library, manual to PREFIX (/usr/local); DESTDIR'
	@echo '  make deb        Debian packages into build/deb'
	@echo
	@echo 'Prove:'
	@echo '  make sim        simulate worlds (WORLDS=n, YEARS=y, FROM=fresh; SEED=s: replay)'
	@echo '  make model      search all interleavings (SIZE=large for the long one)'
	@echo '  make mutants    plant every known bug in the core; each must be caught'
	@echo '  make coverage   branches and lines of src/core that the tests reach'
	@echo '  make conformance  every case on a store (STORE=URL or tests/servers KIND, TIMES=n)'
	@echo '  make chaos      kill and freeze baton run at random (STORE=URL MINUTES=n SEED=s);'
	@echo '                  STORE=redis, postgres, memcached...: and its servers, its network'
	@echo '  make jepsen     updates lost by paused leaders (STORE=redis or postgres MINUTES=n)'
	@echo '  make bindings   all tests of the bindings whose tools are here'
	@echo '  make fuzz       the parsers, on made-up input (MINUTES=n)'
	@echo '  make bench      measure, beside clock_gettime, flock(1) and fsync (STORE=redis: on'
	@echo '                  that, beside its own benchmark; or any kind of tests/servers)'
	@echo '  make evidence   measure and prove, and write docs/evidence, on quiet cores'
	@echo '                  (QUICK=1: the short form; STORES=redis,etcd)'
	@echo
	@echo 'Keep tidy:'
	@echo '  make lint       form, clang-tidy, cppcheck, layers, purity, size, style'
	@echo '  make format     let clang-format rewrite the C code'
	@echo '  make site       README, guide, manual, evidence as HTML into build/site'
	@echo '  make clean      remove build/'

PRESET ?= debug

build:
	@tools/deps $(if $(filter clang fuzz,$(PRESET)),verify,test)
	@tools/build $(PRESET)
	@ln -sfn $(PRESET)/baton build/baton

# As it was given: below, STORE has another meaning when it wasn't.
DEMO := $(STORE)

demo:
	@tools/deps $(if $(DEMO),,build)
	@tools/build plain
	@ln -sfn plain/baton build/baton
	@$(if $(DEMO),tests/servers with $(DEMO) --) tests/cli/demo build/baton

quick:
	@tools/build debug
	@ctest --test-dir build/debug -L quick -j$$(nproc) --output-on-failure

test verify:
	@tools/run-tests $(if $(TIMES),--times $(TIMES)) $@

servers:
	@SERVERS=$(SERVERS) tests/built make

sim_options = $(if $(WORLDS),--worlds $(WORLDS)) $(if $(YEARS),--years $(YEARS)) \
	$(if $(FROM),--from $(FROM)) $(if $(SEED),--seed $(SEED))

sim:
	@tools/build release
	@build/release/sim $(or $(strip $(sim_options)),--worlds 20000)

model:
	@tools/build release
	@tests/model/all build/release $(if $(SIZE),--size $(SIZE))

mutants:
	@tests/mutants/run
	@tests/mutants/run-record

conformance:
	@tools/build release
	@$(if $(STORE),$(if $(findstring :,$(STORE)),,tests/servers with $(STORE) --)) \
		build/release/conformance --times $(or $(TIMES),20) \
		'$(if $(STORE),$(if $(findstring :,$(STORE)),$(STORE),{url}),memory:conformance)'

# With STORE, on a throw-away server of that kind, with its data on this disk; in memory with
# TMPDIR=/dev/shm.
bench:
	@tools/deps test
	@tools/build release
	@$(if $(DEMO),TMPDIR=$${TMPDIR:-$(CURDIR)/build} BATON_TEST_BENCH=1 \
		$(if $(filter s3,$(DEMO)),BATON_TEST_S3_LOG=1) tests/servers with $(DEMO) -- \
		build/release/bench --store '{url}$(if $(filter redis,$(DEMO)),?durable=1)$(if \
		$(filter memcached,$(DEMO)),?weak=ok&max_lease=15000)', \
		build/release/bench build)

evidence:
	@tools/deps test
	@tools/build release
	@tools/evidence/run $(if $(QUICK),--quick) $(if $(STORES),--stores $(STORES))

site:
	@tools/deps site
	@tools/site/run

MINUTES ?= 1

chaos:
	@tools/build release
	@tests/chaos/run --baton build/release/baton --worker build/release/chaos_worker \
		--minutes $(MINUTES) $(if $(STORE),--store '$(STORE)') $(if $(SEED),--seed $(SEED))

jepsen:
	@tools/build release
	@tests/jepsen/run --client build/release/jepsen_client --baton build/release/baton \
		--store $(or $(STORE),redis) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bindings:
	@tools/build debug
	@tests/bindings/all $(LANGUAGES)

fuzz:
	@tools/deps verify
	@tools/fuzz $(MINUTES)

coverage:
	@tools/check-coverage

lint:
	@tools/deps verify
	@tools/build debug
	@ctest --test-dir build/debug -L lint -E clang-tidy -j$$(nproc) --output-on-failure \
		--no-tests=error
	@tools/check-tidy build/debug

format:
	@tools/check-format --fix

examples:
	@cmake --preset release >/dev/null
	@cmake --build build/release --target examples

# The prefix is compiled in (where to look for drivers), so it has a build of its own.
PREFIX ?= /usr/local
INSTALL_BUILD ?= build/install

install:
	@mkdir -p $(INSTALL_BUILD)
	@{ cmake -S . -B $(INSTALL_BUILD) -DCMAKE_BUILD_TYPE=Release -DBATON_HARDENING=ON \
		-DBATON_TESTS=OFF -DBATON_EXAMPLES=OFF '-DCMAKE_INSTALL_PREFIX=$(PREFIX)' \
		-DBATON_INSTALL_STATIC=$(if $(STATIC),ON,OFF) && \
		cmake --build $(INSTALL_BUILD) --parallel $$(nproc); } \
		>$(INSTALL_BUILD)/build.log 2>&1 || { cat $(INSTALL_BUILD)/build.log; exit 1; }
	@DESTDIR='$(DESTDIR)' cmake --install $(INSTALL_BUILD)
	@case '$(DESTDIR)$(PREFIX)' in /usr | /usr/local) ldconfig || true ;; esac

deb:
	@tools/deps deb
	@tools/deb

clean:
	@rm -rf build

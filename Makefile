# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-tools.  GNU make.
#
#   make            build the tools into build/
#   make demo       install what is missing, build, run the main job
#   make check      the same for all tests, or those in TESTS; STATIC=1: and lint;
#                   TOPOLOGY=sentinel: the tools ask sentinels for the server;
#                   TOPOLOGY=cluster: it is a cluster;
#                   REDIS_SERVER=PATH: that server, a Redis or a Valkey
#   make check-needs    which tests need /proc, the network, npm, LD_PRELOAD or root, of all or of TESTS
#   make test       those tests that need no package beyond the usual; installs nothing
#   make faults     kill and disturb everything, at random: SEED, RUNS, LAYOUT;
#                   TOPOLOGY=sentinel, cluster: RUNS failovers, or moves of slots
#   make bench      compare with other tools, as ratios
#   make costs      instructions of tool and server a message, beside those of BASE=
#   make soak       an hour of faults at full load: MINUTES=60 SEED= LAYOUT=
#   make fuzz       feed the parsers nonsense: FUZZ_S=60 seconds, FUZZ=target
#   make valgrind   run every tool under memcheck
#   make boot       as root: run what the pages say of systemd on a machine that it boots
#   make reach      which test files reach which lines of C and Lua, of all or of TESTS
#   make tests-of   the command that runs the quickest tests of FILE=, by that
#   make mutants    break N= lines of DIRS=, one at a time, by SEED=; those not seen
#   make lint       static checks of code, scripts and pages
#   make html       the manual as HTML, in build/html
#   make pictures   take the pictures of README again
#   make compdb     write compile_commands.json, for editors and analysers
#   make format     format all C
#   make install    PREFIX, DESTDIR, BINDIR, MANDIR, COMPDIR, ZSHDIR, FISHDIR,
#                   DOCDIR, UNITDIR, USERUNITDIR, SYSUSERSDIR, TMPFILESDIR and SYSCONFDIR as usual; make uninstall removes it;
#                   SYSTEMD=no: without units, sysusers and tmpfiles; SYSUSERS=no: makes
#                   no account, as under DESTDIR
#   make dist       the tarball of what is committed, without debian/, and its SHA256;
#                   KEY=: and a signature by that key of gpg
#   make deb        Debian packages of that, in build-deb
#
# CC, CFLAGS, CPPFLAGS, LDFLAGS and LDLIBS are the user's; ours come first, so
# that the user's win; what was built with others is built again.  TLS=yes links
# its libraries or fails, TLS=no does without; auto: if they are there.
# SANITIZE=address,undefined builds in a tree of its own.  WERROR=1 turns
# warnings into errors (CI does).

VERSION	= 0.1.0

PREFIX	?= /usr/local
BINDIR	?= $(PREFIX)/bin
MANDIR	?= $(PREFIX)/share/man
COMPDIR	?= $(PREFIX)/share/bash-completion/completions
ZSHDIR	?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISHDIR	?= $(PREFIX)/share/fish/vendor_completions.d
DOCDIR	?= $(PREFIX)/share/doc/mq-tools
UNITDIR	?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)

CFLAGS	?= -O2 -g
PKG_CONFIG ?= pkg-config
TLS	?= auto
SYSTEMD	?= yes
SYSUSERS ?= yes

# allow VARIABLE,VALUES: any other value ends make.
allow	= $(if $(filter-out 1,$(words $($1)))$(filter-out $2,$($1)),$(error $1=$($1): not one of $2))
$(call allow,TLS,yes no auto)
$(call allow,SYSTEMD,yes no)
$(call allow,SYSUSERS,yes no)

TOOLS	= mq-publish mq-consume mq-lease mq-stats mq-return mq-purge mq-pause mq-set mq-clean
PAGES	= $(wildcard man/*.1 man/*.7)

# A flavour of build per sanitizer and compiler, so that none spoils another.
comma	:= ,
flavour	= $(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(filter clang,$(CC)),-clang)
B	= build$(flavour)

WARN	= -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
	  -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla \
	  -Wold-style-definition -Wformat=2 -Wno-format-nonliteral \
	  -Wimplicit-fallthrough
PKGS	= hiredis libbsd-overlay libmd jansson
HAVE_TLS := $(shell $(PKG_CONFIG) --exists 'hiredis_ssl >= 1.0' 'libssl >= 3.0' && echo yes)
WITH_TLS = $(if $(filter auto,$(TLS)),$(HAVE_TLS),$(filter yes,$(TLS)))
PKGS	+= $(if $(WITH_TLS),hiredis_ssl libssl libcrypto)
MQ_CPPFLAGS = $(if $(WITH_TLS),-DMQ_TLS) -D_GNU_SOURCE -DLIBBSD_OPENBSD_VIS -DMQ_VERSION='"$(VERSION)"' -Icommon -Icmd -I$(B)
MQ_CFLAGS = -std=c11 $(WARN) $(if $(WERROR),-Werror) \
	  -fstack-protector-strong -fno-common -pthread $(PKG_CFLAGS)
MQ_LDFLAGS = -Wl,-z,relro,-z,now -Wl,--as-needed
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
# Most names are libc's: the loader finds them sooner in the first library.
PKG_LIBS := -lc $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
# libev has a pkg-config file on some systems only.
EV_LIBS	:= $(or $(shell $(PKG_CONFIG) --libs libev 2>/dev/null),-lev)
PKG_CFLAGS += $(shell $(PKG_CONFIG) --cflags libev 2>/dev/null)

ifdef SANITIZE
MQ_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
MQ_LDFLAGS += -fsanitize=$(SANITIZE)
else
# Where code is optimised, unless the user's flags or the compiler itself say something.
MACROS	:= $(shell echo | $(CC) $(CPPFLAGS) $(CFLAGS) -dM -E -xc - 2>/dev/null | \
	grep -oE '^.define (_FORTIFY_SOURCE|__OPTIMIZE__) ')
ASKED	= $(findstring _FORTIFY_SOURCE,$(MACROS) $(CPPFLAGS) $(CFLAGS))
MQ_CPPFLAGS += $(if $(filter __OPTIMIZE__,$(MACROS)),$(if $(ASKED),,-D_FORTIFY_SOURCE=2))
endif

COMPILE	= $(CC) $(MQ_CPPFLAGS) $(CPPFLAGS) $(MQ_CFLAGS) $(CFLAGS) -MMD -MP
LINK	= $(CC) $(MQ_CFLAGS) $(CFLAGS) $(MQ_LDFLAGS) $(LDFLAGS)

LUA	= $(wildcard common/queue/lua/*.lua common/queue/*/lua/*.lua)
LUALIB	= $(wildcard common/queue/lua/lib/*.lua common/queue/*/lua/lib/*.lua)
objects	= $(patsubst %.c,$(B)/%.o,$(wildcard $1))
COMMON	= $(call objects,common/*/*.c common/*/*/*.c) $(B)/common/lua.o
SHARED	= $(call objects,cmd/shared/*.c)
# A tool is one file, or a folder with rooms of its own.
tool	= $(call objects,cmd/$1.c cmd/$1/*.c cmd/$1/*/*.c)
PAGE	= cmd/mq-stats/page/page.css cmd/mq-stats/page/page.js
FUZZERS	= $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/*.c))
UNITS	= $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/*.c))

all: $(TOOLS:%=$(B)/%) $(B)/mq.bash

# --- building ---------------------------------------------------------------

# What the last build was made with, and of; they change only when that does.
# (-Werror makes nothing else.)
$(B)/flags: export MADE = $(filter-out -Werror,$(COMPILE) $(LINK) \
	$(PKG_LIBS) $(EV_LIBS) $(LDLIBS))
$(B)/sources: export MADE = $(COMMON) $(SHARED) $(foreach t,$(TOOLS),$(call tool,$t)) $(LUA) $(LUALIB)
$(B)/flags $(B)/sources: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$MADE" | cmp -s - $@ || printf '%s\n' "$$MADE" >$@

# (q, since two layouts have files of the same name.)
$(B)/common/libmq.a: $(COMMON) $(B)/sources
	rm -f $@
	$(AR) qcs $@ $(COMMON)

$(B)/cmd/shared.a: $(SHARED) $(B)/sources
	rm -f $@
	$(AR) qcs $@ $(SHARED)

$(B)/%.o: %.c $(B)/flags | prerequisites $(B)/scripts.h
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

# The options are asked from the tools.
$(B)/mq.bash: completions/mq.bash completions/table.sh $(TOOLS:%=$(B)/%)
	{ cat completions/mq.bash && completions/table.sh $(TOOLS:%=$(B)/%) && \
	    echo _mq_begin '"$$@"'; } >$@.new
	mv $@.new $@

# The Lua scripts are files of their own; here they become C strings.
$(B)/scripts.h: common/queue/embed.sh common/queue/embed.awk $(LUA) $(B)/sources
	sh common/queue/embed.sh -h $(LUA) >$@.new
	mv $@.new $@

$(B)/lua.c: common/queue/embed.sh common/queue/embed.awk $(LUA) $(LUALIB) \
    common/message/headers.h common/message/headers.c $(B)/sources
	@mkdir -p $(@D)
	sh common/queue/embed.sh $(LUA) >$@.new
	mv $@.new $@

$(B)/common/lua.o: $(B)/lua.c $(B)/scripts.h $(B)/flags
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

# So do the parts of the page of mq-stats --html.
$(B)/page.c: cmd/mq-stats/page/embed.sh $(PAGE)
	@mkdir -p $(@D)
	sh cmd/mq-stats/page/embed.sh $(PAGE) >$@.new
	mv $@.new $@

$(B)/cmd/page.o: $(B)/page.c $(B)/flags | $(B)/scripts.h
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

define link_tool
$(B)/$1: $(call tool,$1) $(B)/cmd/shared.a $(B)/common/libmq.a $(B)/flags $(B)/sources
	$$(LINK) -o $$@ $$(filter %.o %.a,$$^) $$(PKG_LIBS) $$(EV) $$(LDLIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call link_tool,$t)))

$(B)/mq-consume: EV = $(EV_LIBS)
$(B)/mq-stats: $(B)/cmd/page.o

# A unit test gets those modules that it calls, unless it defines what they would.
$(B)/cmd/mq-consume.a: $(call tool,mq-consume) $(B)/sources
	rm -f $@
	$(AR) qcs $@ $(filter %.o,$^)

$(B)/tests/%: $(B)/tests/unit/%.o $(B)/cmd/mq-consume.a $(B)/cmd/shared.a $(B)/common/libmq.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(PKG_LIBS) $(EV_LIBS) -lcmocka $(LDLIBS)

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/cmd/shared.a $(B)/common/libmq.a
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer -o $@ $^ $(PKG_LIBS) $(LDLIBS)

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# --- what must be installed ---------------------------------------------------

.SECONDARY:
.PHONY: FORCE all prerequisites deps demo check check-needs test faults soak bench costs fuzz fuzzers valgrind boot \
	reach tests-of mutants \
	lint html pictures install uninstall dist deb clean hdr-check compdb format

prerequisites:
	$(if $(filter yes,$(TLS)),$(if $(HAVE_TLS),,$(error TLS=yes: pkg-config \
	    finds no hiredis_ssl 1.0 with libssl 3.0)))
	@tests/deps.sh --check build

deps:
	@tests/deps.sh --install build run test metrics proxy jobs browser node fuzz

# Where no -j is given, all processors build.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Some tests need more than all do: "# needs: SET" in the file names it.
NEEDS	= $(sort $(shell sed -n 's/^\# needs: //p' $(or $(TESTS),tests/*/*.bats)))

# --- running --------------------------------------------------------------------

# The tests know any server, and what is beside it, by the names of Redis.
REDIS_SERVER ?= $(shell command -v redis-server >/dev/null || command -v valkey-server)
ifneq ($(REDIS_SERVER),)
export PATH := $(or $(shell tests/as-redis.sh '$(REDIS_SERVER)' $(B)/server),\
	$(error REDIS_SERVER)):$(PATH)
endif

demo:
	@tests/deps.sh --install build run
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@tests/demo.sh $(B)

check:
	@tests/deps.sh --install build run test $(if $(STATIC),lint)
	@python3 -B tests/needs.py $(TESTS)
	@tests/deps.sh --install $(NEEDS) || \
	    echo "Tests that need these packages will fail." >&2
	@$(MAKE) --no-print-directory $(PARALLEL) all $(UNITS)
	$(if $(filter fuzz,$(NEEDS)),-@$(MAKE) --no-print-directory fuzzers)
	$(if $(filter node,$(NEEDS)),-@tests/deps.sh --npm build/node)
	@MQ_BUILD=$(B) tests/run.sh $(UNITS) $(if $(STATIC),tests/lint.sh)

check-needs:
	@python3 -B tests/needs.py $(TESTS)

# What each tool is for; the other tests are about what may go wrong.
TESTED	= $(wildcard $(foreach t,$(TOOLS:mq-%=%),tests/$t/$t.bats)) tests/consume/verdict.bats tests/queue/wire.bats
test: all $(UNITS)
	@MQ_BUILD=$(B) TESTS="$(TESTED)" tests/run.sh $(UNITS)

faults:
	@tests/deps.sh --install build run test
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
ifneq ($(filter sentinel cluster,$(TOPOLOGY)),)
	@BUILD=$(B) PYTHONDONTWRITEBYTECODE=1 python3 \
	    tests/faults/$(if $(filter cluster,$(TOPOLOGY)),resharding,failover).py \
	    "$(SEED)" "$(RUNS)" "$(LAYOUT)"
else
	@BUILD=$(B) PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/faults.py \
	    "$(SEED)" "$(RUNS)" "$(LAYOUT)"
	@BUILD=$(B) PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/crowd.py \
	    "" "$(LAYOUT)" "" ""
endif

soak:
	@tests/deps.sh --install build run test
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@BUILD=$(B) PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/soak.py \
	    "$(MINUTES)" "$(SEED)" "$(LAYOUT)"

bench:
	@tests/deps.sh --install build run bench node
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@tests/deps.sh --npm build/node
	@MQ_BUILD=$(B) CC="$(CC)" python3 -B tests/bench/bench.py

costs:
	@tests/deps.sh --install build run memcheck
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/costs.py $(B)

# The targets are a flavour of their own, as only clang has libFuzzer.
ifeq ($(FUZZER),)
fuzzers:
	@$(MAKE) --no-print-directory $(PARALLEL) -s FUZZER=1 CC=clang CFLAGS="-O1 -g" \
	    SANITIZE=fuzzer-no-link,address,undefined B=build-fuzz fuzzers
else
fuzzers: $(FUZZERS)
endif

fuzz:
	@tests/deps.sh --install build fuzz
	@$(MAKE) --no-print-directory fuzzers
	@tests/fuzz/run.sh -s $(or $(FUZZ_S),60) $(FUZZ)

valgrind:
	@tests/deps.sh --install build run bench memcheck
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@tests/valgrind.sh $(B)

boot:
	@tests/deps.sh --install build run test
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@tests/boot.sh $(B)

# The tables are in build/reach: one for each file of tests.
reach:
	@tests/deps.sh --install build run test
	@tests/deps.sh --install $(NEEDS) || \
	    echo "Tests that need these packages will fail." >&2
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/reach.py run $(B) $(TESTS)

tests-of:
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/reach.py of $(B) "$(FILE)"

# LIMIT=90 seconds for each.
mutants: all
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/mutants.py $(B) "$(or $(SEED),$(shell \
	    date +%s))" "$(or $(N),20)" $(or $(DIRS),cmd common)

lint:
	@tests/deps.sh --install build lint
	@$(MAKE) --no-print-directory $(PARALLEL) -s all
	@MQ_BUILD=$(B) tests/lint.sh

# Every header compiles alone.
hdr-check: $(B)/scripts.h
	@for h in $$(find cmd common -name '*.h'); do \
	    printf '#include "%s"\n' "$$h" | \
	    $(CC) $(MQ_CPPFLAGS) -I. $(CPPFLAGS) $(MQ_CFLAGS) $(CFLAGS) \
		-fsyntax-only -xc - || exit 1; done

# The manual as HTML, the pages to begin with first.
FIRST_PAGES = man/mq.7 man/mq-tutorial.7
html:
	@tests/deps.sh --install html
	@man/html.sh $(B)/html $(FIRST_PAGES) $(filter-out $(FIRST_PAGES),$(PAGES))
	@echo $(B)/html/index.html

# README's, of a real run.
pictures: all
	python3 man/pictures/make.py $(B) man/pictures

# What editors and analysers ask: how each file is compiled.
compdb: export COMMAND = $(subst ",\",$(filter-out -MMD -MP,$(COMPILE)))
compdb:
	@for f in $$(find cmd common tests/unit tests/fuzz -name '*.c'); do \
	    printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' \
		"$${between-[}" "$(CURDIR)" "$$f" "$$COMMAND" "$$f"; between=,; \
	done >compile_commands.json; echo ']' >>compile_commands.json

format:
	clang-format -i $$(find cmd common tests -name '*.[ch]')

# --- installing -------------------------------------------------------------------

DOCS	= README.md NEWS
EXAMPLES = $(wildcard tests/house/examples/*)
UNITS_OF_SYSTEMD = $(wildcard cmd/services/*.service cmd/services/*.timer cmd/services/*.socket)
UNITS_OF_USERS = $(wildcard cmd/services/user/*)

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1 \
	    $(DESTDIR)$(MANDIR)/man7 $(DESTDIR)$(COMPDIR) $(DESTDIR)$(ZSHDIR) \
	    $(DESTDIR)$(FISHDIR) $(DESTDIR)$(DOCDIR)/examples \
	    $(DESTDIR)$(SYSCONFDIR)/logrotate.d
	install -m 755 $(TOOLS:%=$(B)/%) $(DESTDIR)$(BINDIR)
	install -m 644 $(filter %.1,$(PAGES)) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(filter %.7,$(PAGES)) $(DESTDIR)$(MANDIR)/man7
	install -m 644 $(DOCS) $(DESTDIR)$(DOCDIR)
	for e in $(EXAMPLES); do [ -x $$e ] && mode=755 || mode=644; \
	    install -m $$mode $$e $(DESTDIR)$(DOCDIR)/examples || exit 1; done
	install -m 644 cmd/services/mq-tools.logrotate \
	    $(DESTDIR)$(SYSCONFDIR)/logrotate.d/mq-tools
	for t in $(TOOLS); do \
	    install -m 644 $(B)/mq.bash $(DESTDIR)$(COMPDIR)/$$t && \
	    sed 's|@COMPDIR@|$(COMPDIR)|' completions/mq.fish >$(DESTDIR)$(FISHDIR)/$$t.fish && \
	    chmod 644 $(DESTDIR)$(FISHDIR)/$$t.fish || exit 1; done
	sed 's|@COMPDIR@|$(COMPDIR)|' completions/_mq >$(DESTDIR)$(ZSHDIR)/_mq
	chmod 644 $(DESTDIR)$(ZSHDIR)/_mq
ifeq ($(SYSTEMD),yes)
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(USERUNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR)
	for u in $(notdir $(UNITS_OF_SYSTEMD)); do \
	    sed -e 's|@BINDIR@|$(BINDIR)|' -e '/@SANDBOX@/{r cmd/services/sandbox' -e 'd;}' \
	        cmd/services/$$u >$(DESTDIR)$(UNITDIR)/$$u && \
	    chmod 644 $(DESTDIR)$(UNITDIR)/$$u || exit 1; done
	for u in $(notdir $(UNITS_OF_USERS)); do \
	    sed 's|@BINDIR@|$(BINDIR)|' cmd/services/user/$$u \
	        >$(DESTDIR)$(USERUNITDIR)/$$u && \
	    chmod 644 $(DESTDIR)$(USERUNITDIR)/$$u || exit 1; done
	install -m 644 cmd/services/mq-tools.sysusers $(DESTDIR)$(SYSUSERSDIR)/mq-tools.conf
	install -m 644 cmd/services/mq-tools.tmpfiles $(DESTDIR)$(TMPFILESDIR)/mq-tools.conf
ifeq ($(DESTDIR)$(SYSUSERS),yes)
	[ "$$(id -u)" != 0 ] || ! command -v systemd-sysusers >/dev/null || { \
	    systemd-sysusers $(SYSUSERSDIR)/mq-tools.conf && \
	    systemd-tmpfiles --create $(TMPFILESDIR)/mq-tools.conf; }
endif
endif

uninstall:
	rm -f $(TOOLS:%=$(DESTDIR)$(BINDIR)/%)
	rm -f $(patsubst man/%,$(DESTDIR)$(MANDIR)/man1/%,$(filter %.1,$(PAGES)))
	rm -f $(patsubst man/%,$(DESTDIR)$(MANDIR)/man7/%,$(filter %.7,$(PAGES)))
	rm -f $(TOOLS:%=$(DESTDIR)$(COMPDIR)/%) $(TOOLS:%=$(DESTDIR)$(FISHDIR)/%.fish)
	rm -f $(DESTDIR)$(ZSHDIR)/_mq
	rm -f $(UNITS_OF_SYSTEMD:cmd/services/%=$(DESTDIR)$(UNITDIR)/%)
	rm -f $(UNITS_OF_USERS:cmd/services/user/%=$(DESTDIR)$(USERUNITDIR)/%)
	rm -f $(DESTDIR)$(SYSUSERSDIR)/mq-tools.conf $(DESTDIR)$(TMPFILESDIR)/mq-tools.conf $(DESTDIR)$(SYSCONFDIR)/logrotate.d/mq-tools
	rm -f $(DOCS:%=$(DESTDIR)$(DOCDIR)/%)
	rm -f $(EXAMPLES:tests/house/%=$(DESTDIR)$(DOCDIR)/%)
	for d in $(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(DOCDIR); do \
	    [ ! -d $$d ] || rmdir $$d || exit 1; done

# The same bytes wherever a commit is packed, and for whom.
NAME	= mq-tools-$(VERSION)
$(NAME).tar.gz: FORCE
	git -c tar.umask=022 archive --format=tar --prefix=$(NAME)/ -o $(NAME).tar HEAD \
	    -- . ':!debian'
	gzip -9nf $(NAME).tar

dist: $(NAME).tar.gz
	sha256sum $< >$<.sha256
	rm -f $<.asc
	$(if $(KEY),gpg --local-user '$(KEY)' --armor --detach-sign $<)

# The lintian of an older Debian does not know the newest policy.
deb: $(NAME).tar.gz
	@tests/deps.sh --install build run test deb
	rm -rf build-deb
	mkdir build-deb
	tar -C build-deb -xzf $(NAME).tar.gz
	git archive HEAD debian | tar -C build-deb/$(NAME) -x
	mv $(NAME).tar.gz build-deb/mq-tools_$(VERSION).orig.tar.gz
	cd build-deb/$(NAME) && dpkg-buildpackage -us -uc
	lintian --suppress-tags newer-standards-version --fail-on error,warning build-deb/*.changes

clean:
	rm -rf build build-*

# The gates: what `make test` and `make verify` ask for beyond the unit tests and stories of this
# build. Each is one CTest test, so that all are counted, timed and reported alike. Only the debug
# preset has them. The end of this file says which of the two commands runs which test.
#
# Long ones have a high COST: CTest starts those first, and the short ones fill the gaps. It counts
# in half cores (tools/run-tests): what mostly waits, as the stores' tests do, takes one of them;
# what computes, two; and what uses all cores by itself takes all. Who takes more goes first
# (baton_half_cores): the others fit into every gap that is left, and would leave those to the end,
# where two of them are all that fits, and cores are idle.

set(waiting conformance faults chaos servers)
set(parallel build mutants)
set(tools ${PROJECT_SOURCE_DIR}/tools)

# baton_gate(NAME COST TIMEOUT LABEL COMMAND...)
function(baton_gate name cost timeout label)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set(half_cores 2)
	if(label IN_LIST waiting)
		set(half_cores 1)
	elseif(label IN_LIST parallel OR name STREQUAL gate/clang-tidy)
		set(half_cores 1000)
	endif()
	set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
	baton_half_cores(${name} ${cost} ${half_cores})
endfunction()

# The other builds: each must compile without a warning. Where the flags are those of another build
# but for a sanitizer, only what a test or a gate runs.
set(asan_targets quick_programs examples sim conformance faults modules)
set(tsan_targets conformance modules)
set(fuzz_targets fuzzers)
foreach(preset release asan clang tsan fuzz)
	baton_gate(build/${preset} 1000 900 build ${tools}/build ${preset} ${${preset}_targets})
	set_tests_properties(build/${preset} PROPERTIES FIXTURES_SETUP build-${preset})
endforeach()

if(EXISTS ${PROJECT_SOURCE_DIR}/tests/mutants/run)
	baton_gate(mutants/sample 900 900 mutants ${PROJECT_SOURCE_DIR}/tests/mutants/run --sample)
	baton_gate(mutants/record-sample 890 900 mutants
		${PROJECT_SOURCE_DIR}/tests/mutants/run-record --sample)
endif()
if(TARGET model)
	baton_gate(model/small 300 400 model model --size small)
	baton_gate(model/default 800 1800 model model)
	baton_gate(model/itself 200 400 model model --walks 300)
endif()
if(TARGET sim)
	baton_gate(sim/worlds 620 900 sim sim --worlds 20000)
	# Worlds that nobody has seen before: it says from which seed, and a violation says its own.
	baton_gate(sim/fresh 250 900 sim sim --worlds 8000 --from fresh)
	if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/seeds)
		baton_gate(sim/seeds 100 400 sim sim --seeds tests/seeds)
	endif()
	baton_gate(asan/sim 600 900 asan ${asan_dir}/sim --worlds 1000)
	set_tests_properties(asan/sim PROPERTIES FIXTURES_REQUIRED build-asan)
	baton_gate(gate/trace-hash 300 400 gate ${tools}/check-trace-hash
		$<TARGET_FILE:sim> build/release/sim build/asan/sim build/clang/sim)
	set_tests_properties(gate/trace-hash PROPERTIES
		FIXTURES_REQUIRED "build-release;build-asan;build-clang")
endif()

# Installed, and used from outside; with a build of its own.
if(TARGET baton)
	baton_gate(install/outside 860 900 install
		${PROJECT_SOURCE_DIR}/tests/install/run ${PROJECT_BINARY_DIR}/install-test)
endif()

# The Debian packages: built, installed into a root of their own, run there, removed.
if(TARGET baton_command)
	baton_gate(deb/install 855 900 install
		${PROJECT_SOURCE_DIR}/tests/deb/run ${PROJECT_BINARY_DIR}/deb-test)
	set_tests_properties(deb/install PROPERTIES SKIP_RETURN_CODE 77)
endif()

if(TARGET model-file)
	baton_gate(model/file 630 900 model model-file)
	baton_gate(model/file-variants 450 900 model model-file --variants)
	baton_gate(model/file-marks 1 60 model ${PROJECT_SOURCE_DIR}/tests/model/file/marks)
endif()
if(TARGET sim-record)
	baton_gate(sim/record 240 400 sim sim-record --worlds 250)
	baton_gate(sim/record-fresh 120 400 sim sim-record --worlds 100 --from fresh)
endif()
if(TARGET model-record)
	baton_gate(model/record-small 310 400 model model-record --size small)
	baton_gate(model/record-default 990 2400 model model-record)
endif()
if(TARGET conformance)
	foreach(build debug asan tsan)
		foreach(store memory file memory-record)
			baton_gate(conformance/${build}-${store} 650 900 conformance
				${tools}/check-conformance build/${build}/conformance ${store})
			if(NOT build STREQUAL debug)
				set_tests_properties(conformance/${build}-${store} PROPERTIES
					FIXTURES_REQUIRED build-${build})
			endif()
		endforeach()
	endforeach()
endif()

# The example of docs/new-store.md; and record stores where calls fail at random.
if(TARGET conformance)
	baton_gate(conformance/debug-directory 650 900 conformance
		${tools}/check-conformance build/debug/conformance directory)
	baton_gate(conformance/network-memory-record 650 900 conformance ${tools}/check-conformance
		build/debug/conformance memory-record --network default --jobs 12)
endif()

# The adapter in memory tells of changes; or it forgets; or it reads one record at a time, as object
# stores do; or claims hold a native lock of either kind.
if(TARGET conformance)
	baton_gate(conformance/memory-record-weak 250 400 conformance build/debug/conformance
		--jobs 12 --lease 400
		--case C3,C8,C16,C17,C18,C25,N3,N6,N7,N12,N15,N16,N20,N25,N28,N29,N34
		"memory+record:weak?weak=1&max_lease=1000")
	baton_gate(conformance/memory-record-one 250 400 conformance
		${CMAKE_COMMAND} -E env BATON_FAULTY_AS=get_max=1,values=0,batch_max=7
		build/debug/conformance --jobs 12 "memory+record:one")
	baton_gate(conformance/memory-record-push 250 400 conformance build/debug/conformance
		--jobs 12 "memory+record:push?push=1")
	foreach(kind session duration)
		baton_gate(conformance/memory-record-locks-${kind} 250 400 conformance
			build/debug/conformance --jobs 12
			--case C3,C8,C16,C17,C18,C25,N3,N5,N6,N7,N12,N15,N16,N20,N23,N25,N28,N29,N34
			"memory+record:locks?locks=${kind}")
	endforeach()
endif()

if(TARGET faults)
	baton_gate(faults/lives 640 300 faults ${asan_dir}/faults)
	set_tests_properties(faults/lives PROPERTIES FIXTURES_REQUIRED build-asan)
	foreach(store memory file)
		baton_gate(faults/${store} 600 300 faults ${tools}/check-conformance
			build/debug/conformance-faulty ${store} --faults 1 --jobs 12)
	endforeach()
endif()

# A slow disk must not be taken for a slow store.
set(in_memory)
if(EXISTS /dev/shm)
	set(in_memory ${CMAKE_COMMAND} -E env TMPDIR=/dev/shm)
endif()

# The stores that need a server, on a real one; where that can't be had, it says so. A server and
# its many sessions take a whole core. `build` is the preset that they run with; with another one:
#   tests/servers with redis -- build/asan/conformance {url}
set(build debug)
function(baton_conformance_on kind module)
	if(NOT TARGET conformance OR NOT TARGET baton_module_${module})
		return()
	endif()
	set(name conformance/${build}-${kind})
	set(half_cores 2)
	if(--network IN_LIST ARGN)
		set(name conformance/network-${kind})
		set(half_cores 1)
	elseif(--case IN_LIST ARGN) # a few of them, which mostly wait
		set(half_cores 1)
	endif()
	set(as)
	if(name STREQUAL conformance/debug-mariadb) # as a user with the least rights
		set(as ${PROJECT_SOURCE_DIR}/tests/mysql/least build/debug/baton)
	endif()
	baton_gate(${name} 650 900 conformance ${in_memory}
		${PROJECT_SOURCE_DIR}/tests/servers with ${kind} -- ${as}
		build/${build}/conformance ${ARGN} {url})
	set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "conformance;servers")
	baton_half_cores(${name} 650 ${half_cores})
	if(NOT build STREQUAL debug)
		set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED build-${build})
	endif()
endfunction()
baton_conformance_on(redis redis)
# The other ways to a Redis server, and the other servers: what may depend on them. All of it:
#   make conformance STORE=redis-cluster TIMES=20
foreach(kind redis-tls redis-sentinel redis-cluster redis-old valkey)
	baton_conformance_on(${kind} redis --case C1,C8,C16,N1,N3,N7,N20,N27,N32)
endforeach()
# With a lease that leaves a busy machine time to start 150 sessions, and to sync.
baton_conformance_on(postgres postgres --lease 1500 --jobs 4)
baton_conformance_on(mariadb mysql --lease 2000 --jobs 6)
# Its server is older than the longest lease: a fresh one elects nobody for so long.
baton_conformance_on(memcached-aged memcached --lease 2000 --jobs 8)
# On a server of our own: what a mistake in the adapter would break first; below, all of it.
baton_conformance_on(mssql mssql --lease 2000 --jobs 6 --case C1,C8,C16,N1,N3,N5,N23,N27)
# Of a server that `make servers` fetches, what a mistake in the adapter would break first.
baton_conformance_on(mongodb mongodb --lease 3000 --jobs 6 --case C1,C8,C16,N1,N3,N5,N30)
# Leases are 2 s at least, and longer ones leave a busy machine time: the cases mostly wait.
baton_conformance_on(etcd etcd --lease 3000 --jobs 12)
# Of these two, what a mistake in a driver would break first; below, more of it.
baton_conformance_on(consul-acl consul --lease 3000 --jobs 6 --case C1,C8,N1,N3,N5,N33)
baton_conformance_on(kubernetes-plain kubernetes --lease 6000 --jobs 6 --case C1,C8,N1,N3,N5)
baton_conformance_on(s3-tls s3 --lease 2000 --jobs 6 --case C1,C8,C16,N1,N3,N5,N7,N30)

# Servers end with those who asked for them.
baton_gate(servers/leash 100 300 servers ${PROJECT_SOURCE_DIR}/tests/servers_test
	redis-sentinel postgres)
set_tests_properties(servers/leash PROPERTIES SKIP_RETURN_CODE 77)

# The other modes of PostgreSQL: what they do otherwise, and that no memory is touched that is gone:
# a session of its own for each election is a life of its own. All cases: make conformance.
set(cases C3,C8,C15,C16,C17,C18,N1,N2,N3,N5,N6,N16,N21,N25,N32)
set(drain_and_lists N37,N38,N39,N40,N41,N42,N43,N44)
foreach(mode "fast=1" "mode=advisory" "mode=advisory&fast=1")
	string(REGEX REPLACE "mode=|=1" "" word "${mode}")
	string(REPLACE "&" "-" word "${word}")
	set(drain ${drain_and_lists})
	if(mode MATCHES "fast") # a leader that loses its session is replaced under its work
		string(REPLACE "N38," "" drain "${drain}")
	endif()
	if(TARGET conformance AND TARGET baton_module_postgres)
		baton_gate(conformance/postgres-${word} 250 400 conformance ${in_memory}
			${PROJECT_SOURCE_DIR}/tests/servers with postgres --
			build/asan/conformance --lease 1500 --jobs 6
			--case ${cases},${drain} "{url}?${mode}")
		set_tests_properties(conformance/postgres-${word} PROPERTIES SKIP_RETURN_CODE 77
			LABELS "conformance;servers" FIXTURES_REQUIRED build-asan)
	endif()
endforeach()

# MySQL's named locks beside the claims. All cases: make conformance.
if(TARGET conformance AND TARGET baton_module_mysql)
	baton_gate(conformance/mysql-lock 250 400 conformance ${in_memory}
		${PROJECT_SOURCE_DIR}/tests/servers with mariadb -- build/debug/conformance
		--lease 2000 --jobs 6 --case C3,C8,C16,C17,C18,N1,N2,N5,N7,N16,N23,N25,N28
		"{url}?mode=lock")
	set_tests_properties(conformance/mysql-lock PROPERTIES SKIP_RETURN_CODE 77
		LABELS "conformance;servers")
endif()

# SQL Server's application locks.
if(TARGET conformance AND TARGET baton_module_mssql)
	baton_gate(conformance/mssql-applock 250 400 conformance ${in_memory}
		${PROJECT_SOURCE_DIR}/tests/servers with mssql -- build/debug/conformance
		--lease 2000 --jobs 6 --case C3,C8,C16,C17,C18,N1,N2,N5,N7,N15,N16,N23,N25,N28
		"{url}&mode=applock")
	set_tests_properties(conformance/mssql-applock PROPERTIES SKIP_RETURN_CODE 77
		LABELS "conformance;servers")
endif()

# A member takes its time on a busy machine, and its leases are 2 s at least: what may depend on the
# store, with leases that leave it time. All of it, by hand: make conformance STORE=etcd. Since they
# wait for the store most of the time, the thread sanitizer looks on.
set(build tsan)
baton_conformance_on(etcd etcd --lease 4000 --jobs 5
	--case C1,C3,C8,C16,C17,C19,C26,N1,N3,N5,N7,N16,N20,N23,N25,N27,N28,N29,N32,N34)
# A newer one differs in how it ends leases and watches.
baton_conformance_on(etcd-new etcd --lease 4000 --case C1,C8,C16,N1,N5,N7,N29)

# Azurite is one thread of JavaScript: leases leave it time.
set(build debug)
baton_conformance_on(azblob azblob --lease 4000 --jobs 4)
# Blob leases beside the claims last for 15 s at least, and so do these leases; a minute in all.
if(TARGET conformance AND TARGET baton_module_azblob)
	baton_gate(conformance/azblob-bloblease 250 400 conformance ${in_memory}
		${PROJECT_SOURCE_DIR}/tests/servers with azblob -- build/debug/conformance
		--lease 15000 --jobs 12 --case C3,C8,C16,C17,C18,N1,N5,N16,N25,N28
		"{url}&mode=bloblease")
	set_tests_properties(conformance/azblob-bloblease PROPERTIES SKIP_RETURN_CODE 77
		LABELS "conformance;servers")
endif()
baton_conformance_on(azblob azblob --network default --lease 4000 --jobs 8
	--case C1,C3,C8,C16,C19,N1,N5,N6,N10,N15,N16,N20,N28)
set(build tsan)

# A session ends after twice its time: only what may depend on the store, as for etcd. All of it:
#   make conformance STORE=consul-acl
set(cases C1,C3,C8,C16,C17,C19,C21,C26,N1,N3,N5,N7,N16,N20,N23,N25,N27,N28,N29,N32,N33,N34)
baton_conformance_on(consul-acl consul --lease 3000 --jobs 6
	--case ${cases},${drain_and_lists})

# An API server has much to do for each request, and so leases are long. All of it, by hand:
# make conformance STORE=kubernetes-plain
baton_conformance_on(kubernetes-plain kubernetes --lease 6000 --jobs 5
	--case C1,C8,C16,C17,N1,N3,N5,N7,N16,N25,N27,N28,N29,N34,${drain_and_lists})

set(build debug)

# Its server is built, too; the cases mostly wait. All of them are few enough.
baton_conformance_on(s3 s3 --lease 2000 --jobs 8)

# All cases on the server for SQL Server's statements, which the debug build runs a few of.
set(build asan)
baton_conformance_on(mssql mssql --lease 3000 --jobs 6)
# And on the server that stands in for MongoDB's: with shorter leases or more jobs it is too slow.
baton_conformance_on(mongodb mongodb --lease 4000 --jobs 6)
if(TEST conformance/asan-mssql)
	set(leaks ${PROJECT_SOURCE_DIR}/tests/mssql/leaks.txt)
	set_tests_properties(conformance/asan-mssql PROPERTIES
		ENVIRONMENT LSAN_OPTIONS=print_suppressions=0:suppressions=${leaks})
endif()
set(build debug)

# And behind a bad network, where they wait even more: only safety counts (conformance --help).
baton_conformance_on(redis redis --network default --jobs 12)
baton_conformance_on(postgres postgres --network default --lease 1500 --jobs 8)
baton_conformance_on(mariadb mysql --network default --lease 2000 --jobs 8
	--case C1,C3,C5,C8,C16,C17,C18,C19,C26,N1,N2,N3,N5,N6,N10,N15,N16,N20,N23,N25,N28,N31)
baton_conformance_on(mssql mssql --network default --lease 2000 --jobs 8
	--case C1,C3,C5,C8,C16,C17,C18,C19,C26,N1,N2,N3,N5,N6,N10,N15,N16,N20,N23,N25,N28,N31)
baton_conformance_on(mongodb mongodb --network default --lease 3000 --jobs 8
	--case C1,C3,C5,C8,C16,C17,C18,C19,C26,N1,N2,N3,N5,N6,N10,N15,N16,N20,N23,N25,N28,N31)
baton_conformance_on(memcached-aged memcached --network default --lease 2000 --jobs 8
	--case C1,C3,C5,C8,C16,C17,C18,C19,C26,N1,N2,N3,N5,N6,N10,N15,N16,N20,N23,N25,N28,N31)
baton_conformance_on(etcd etcd --network default --lease 4000 --jobs 8
	--case C1,C3,C8,C16,C19,C26,N1,N3,N5,N6,N10,N15,N16,N20,N23,N28)
baton_conformance_on(s3 s3 --network default --lease 2000 --jobs 8
	--case C1,C3,C8,C16,N1,N3,N5,N6,N10,N15,N16,N20,N28)
baton_conformance_on(consul-acl consul --network default --lease 3000 --jobs 8
	--case C1,C8,C16,N1,N5,N6,N10,N15,N16,N20,N28)
baton_conformance_on(kubernetes-plain kubernetes --network default --lease 6000 --jobs 8
	--case C1,C8,C16,N1,N5,N6,N10,N15,N16,N20,N28)

# What a restart, a failover or a wrong setting of a real server does: each case of tests/STORE/run.
foreach(store azblob redis postgres mysql mongodb mssql s3 consul etcd kubernetes memcached)
	set(suite ${PROJECT_SOURCE_DIR}/tests/${store}/run)
	file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${store}/*.py)
	set(cases "")
	foreach(part ${suite} ${parts})
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
		file(STRINGS ${part} more REGEX "^def case_")
		list(APPEND cases ${more})
	endforeach()
	if(TARGET baton_module_${store} AND TARGET baton_command)
		foreach(case IN LISTS cases)
			string(REGEX REPLACE "^def case_([a-z0-9_]+).*" "\\1" name ${case})
			baton_gate(${store}/${name} 100 300 servers ${suite}
				$<TARGET_FILE:baton_command> ${name})
			set_tests_properties(${store}/${name} PROPERTIES SKIP_RETURN_CODE 77)
		endforeach()
	endif()
endforeach()
if(TARGET baton_module_postgres)
	baton_gate(postgres/late 100 300 servers ${in_memory} ${PROJECT_SOURCE_DIR}/tests/servers
		with postgres -- $<TARGET_FILE:postgres-late> ${BATON_MODULES}/postgres.so {url})
	set_tests_properties(postgres/late PROPERTIES SKIP_RETURN_CODE 77)
endif()

# `baton serve` as a program: each case of tests/serve/run; those that take long are told apart.
if(TARGET baton_serve)
	foreach(suite run work callbacks telemetry proof)
		set(file ${PROJECT_SOURCE_DIR}/tests/serve/${suite})
		if(NOT EXISTS ${file})
			continue()
		endif()
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
		file(STRINGS ${file} cases REGEX "^def case_")
		foreach(case IN LISTS cases)
			string(REGEX REPLACE "^def case_([a-z0-9_]+).*" "\\1" name ${case})
			baton_gate(serve/${suite}-${name} 60 300 servers ${file}
				$<TARGET_FILE:baton_command> ${name})
			set_tests_properties(serve/${suite}-${name} PROPERTIES SKIP_RETURN_CODE 77)
		endforeach()
	endforeach()
endif()

# `make demo` on the file store, and the command for the dashboard that the demo ends with.
baton_gate(demo/file 60 200 servers ${PROJECT_SOURCE_DIR}/tests/cli/demo_ends
	$<TARGET_FILE:baton_command>)
set_tests_properties(demo/file PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK demo)
# ... and on servers. They share a folder.
foreach(kind redis memcached postgres mariadb mssql mongodb s3 azblob etcd consul kubernetes)
	string(REPLACE mariadb mysql module ${kind})
	if(TARGET baton_command AND TARGET baton_module_${module})
		baton_gate(demo/${kind} 60 200 servers ${PROJECT_SOURCE_DIR}/tests/servers with
			${kind} -- ${PROJECT_SOURCE_DIR}/tests/cli/demo
			$<TARGET_FILE:baton_command>)
		set_tests_properties(demo/${kind} PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK demo)
	endif()
endforeach()

# Its dashboard in a real browser: each case of tests/dashboard/run.
if(TARGET baton_serve)
	set(suite ${PROJECT_SOURCE_DIR}/tests/dashboard/run)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${suite})
	file(STRINGS ${suite} cases REGEX "^def case_")
	foreach(case IN LISTS cases)
		string(REGEX REPLACE "^def case_([a-z0-9_]+).*" "\\1" name ${case})
		baton_gate(dashboard/${name} 60 300 servers ${suite}
			$<TARGET_FILE:baton_command> ${name})
		set_tests_properties(dashboard/${name} PROPERTIES SKIP_RETURN_CODE 77)
	endforeach()
endif()

# What the doctor finds on real servers.
foreach(store redis postgres)
	set(cases "" _settings _rights _tls)
	if(store STREQUAL redis)
		list(APPEND cases _replica _sentinel _cluster)
	else()
		list(APPEND cases _pooler)
	endif()
	if(TARGET baton_module_${store} AND TARGET baton_command)
		foreach(case IN LISTS cases)
			baton_gate(doctor/${store}${case} 90 300 servers
				${PROJECT_SOURCE_DIR}/tests/doctor/run
				$<TARGET_FILE:baton_command> ${store}${case})
			set_tests_properties(doctor/${store}${case} PROPERTIES SKIP_RETURN_CODE 77)
		endforeach()
	endif()
endforeach()

include(cmake/Bindings.cmake)

baton_gate(gate/coverage 850 900 coverage ${tools}/check-coverage)
baton_gate(gate/gates 60 400 gate ${PROJECT_SOURCE_DIR}/tests/gates/run)

# `make lint` is the label lint; clang-tidy analyzes all of it there, which takes minutes.
baton_gate(gate/clang-tidy 950 900 lint ${tools}/check-tidy ${PROJECT_BINARY_DIR} quick)
baton_gate(gate/cppcheck 400 900 lint ${tools}/check-cppcheck)
baton_gate(gate/purity 50 120 lint ${tools}/check-purity
	$<TARGET_FILE:baton_core> $<TARGET_FILE:baton_decide> $<TARGET_FILE:baton_answer>)
baton_gate(gate/purity-release 50 120 lint ${tools}/check-purity
	build/release/libbaton_core.a build/release/libbaton_decide.a
	build/release/libbaton_answer.a)
set_tests_properties(gate/purity-release PROPERTIES FIXTURES_REQUIRED build-release)
baton_gate(gate/abi 10 200 lint ${PROJECT_SOURCE_DIR}/tests/api/abi)
if(TARGET baton)
	baton_gate(gate/symbols 10 200 lint ${tools}/check-symbols $<TARGET_FILE:baton>)
endif()
if(TARGET baton_command)
	baton_gate(gate/docs-command 10 200 lint
		${tools}/check-manual $<TARGET_FILE:baton_command>)
endif()
foreach(gate copies docs format layers links messages pages size style words)
	baton_gate(gate/${gate} 10 200 lint ${tools}/check-${gate})
endforeach()
find_program(SHELLCHECK shellcheck)
if(SHELLCHECK)
	baton_gate(gate/shellcheck 10 200 lint ${tools}/check-shell)
endif()
# Whoever adds a test hears in the edit loop that it is part of no command yet.
baton_gate(gate/commands 10 200 lint ${tools}/check-commands ${PROJECT_BINARY_DIR})
set_tests_properties(gate/commands PROPERTIES LABELS "lint;quick")

# What waits for half a minute and more begins early: at the end it would wait alone.
foreach(name serve/telemetry-candidates_are_counted cli/telemetry docs/first-minute-redis
		docs/first-minute-memcached memcached/traffic mysql/traffic mongodb/traffic
		mssql/traffic mongodb/doubt etcd/deaf_watch)
	if(TEST ${name})
		set_tests_properties(${name} PROPERTIES COST 300)
	endif()
endforeach()

# ---- which command runs which test ----

# `make test` is what everybody runs, also on a fresh clone: ten minutes on two cores at most, with
# the debug build and the servers that the distribution has. `make verify` is the rest: other builds
# and their sanitizers, faults of network and system, chaos, planted bugs, long searches, packages,
# and the servers that `make servers` builds. Each test is part of exactly one of them:
# gate/commands fails for a test that no line matches, or a line of both lists.
set(of_test
	"(unit|story|fuzz)/.*" # the edit loop's
	"store/.*" # the file store, killed and stopped at every system call
	"(cli|examples|completion|systemd|docs|telemetry)/.*"
	"serve/(run|work|callbacks|telemetry)-.*"
	"sim/.*" "model/(small|itself|file.*|record-small)"
	"bindings/few-.*" # five scenarios of each language, and its README's example
	"chaos/(judge|world)" # the rig of `make chaos` itself
	"conformance/debug-(memory|memory-record|directory|file)" # each case once
	"conformance/debug-(redis|memcached-aged|postgres|mariadb|mssql|etcd)"
	"conformance/debug-(consul-acl|kubernetes-plain|mongodb|s3-tls)" # a few, if there
	"(redis|memcached|postgres|mysql|mongodb|mssql|etcd|doctor|servers)/.*"
	"gate/(abi|commands|copies|cppcheck|docs|docs-command|format|gates|layers|purity)"
	"gate/(links|messages|pages|shellcheck|size|style|symbols|words)")
set(of_verify
	"build/.*" "(asan|demo|faults|mutants|install|deb|jepsen|site)/.*"
	"model/(default|record-default)" "serve/proof-.*" "dashboard/.*"
	"bindings/rest-.*"
	"chaos/(file|outlive|memcached|azblob|broken|redis|postgres|mssql|s3|mariadb)(-.*)?"
	"chaos/(mongodb|etcd|consul|kubernetes)(-.*)?"
	"conformance/(asan|tsan|network|postgres|mssql|mysql|memory|azblob)-.*" # builds, modes
	"conformance/debug-(azblob|redis-.*|valkey|s3)"
	"(azblob|consul|kubernetes|s3)/.*"
	"gate/(clang-tidy|coverage|purity-release|trace-hash)")
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(name IN LISTS tests)
	foreach(command test verify)
		foreach(pattern IN LISTS of_${command})
			if(name MATCHES "^(${pattern})$")
				set_property(TEST ${name} APPEND PROPERTY LABELS ${command})
			endif()
		endforeach()
	endforeach()
endforeach()

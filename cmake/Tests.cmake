# The test programs and what CTest runs of them. Names are `room/name`; the label `quick` marks
# what belongs to the edit loop. The gates' build also registers each quick test a second time, as
# `asan/room/name`, on the programs of the sanitizers' build.

set(asan_dir ${PROJECT_SOURCE_DIR}/build/asan)

# baton_program(NAME SOURCES...): a test program, linked with all that tests share.
function(baton_program name)
	add_executable(${name} ${ARGN})
	target_link_libraries(${name} PRIVATE baton_flags baton_core)
	target_include_directories(${name} PRIVATE tests/lib)
	if(TARGET baton_testlib)
		target_link_libraries(${name} PRIVATE baton_testlib)
	endif()
endfunction()

# baton_quick_test(NAME PROGRAM ARGUMENTS...)
function(baton_quick_test name program)
	add_test(NAME ${name} COMMAND ${program} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES LABELS quick TIMEOUT 240)
	if(BATON_GATES)
		add_test(NAME asan/${name} COMMAND ${asan_dir}/${program} ${ARGN}
			WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
		set_tests_properties(asan/${name} PROPERTIES
			LABELS asan TIMEOUT 400 FIXTURES_REQUIRED build-asan)
	endif()
endfunction()

file(GLOB testlib_sources CONFIGURE_DEPENDS tests/lib/*.c)
if(testlib_sources)
	add_library(baton_testlib STATIC ${testlib_sources})
	target_link_libraries(baton_testlib PUBLIC baton_core PRIVATE baton_flags)
	target_include_directories(baton_testlib PUBLIC tests/lib)
	baton_fast(baton_testlib)
endif()

file(GLOB unit_sources CONFIGURE_DEPENDS tests/unit/test_*.c)
if(NOT TARGET baton_driver_redis)
	list(FILTER unit_sources EXCLUDE REGEX test_redis)
endif()
if(NOT TARGET baton_web)
	list(FILTER unit_sources EXCLUDE REGEX test_web)
elseif(NOT OpenSSL_FOUND)
	list(FILTER unit_sources EXCLUDE REGEX test_web_tls)
endif()
if(unit_sources)
	find_package(PkgConfig REQUIRED)
	pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
foreach(source ${unit_sources})
	get_filename_component(program ${source} NAME_WE)
	baton_program(${program} ${source})
	target_link_libraries(${program} PRIVATE PkgConfig::CMOCKA)
	if(TARGET baton_parts)
		target_link_libraries(${program} PRIVATE baton_parts)
	endif()
	if(program STREQUAL test_postgres_sight) # a part of a module; it needs no library
		target_sources(${program} PRIVATE src/store/postgres/sight.c)
	endif()
	if(program STREQUAL test_redis)
		target_link_libraries(${program} PRIVATE baton_driver_redis)
	endif()
	if(program MATCHES "^test_web")
		target_link_libraries(${program} PRIVATE baton_web)
	endif()
	if(program STREQUAL test_web_tls) # the server
		target_link_libraries(${program} PRIVATE OpenSSL::SSL OpenSSL::Crypto)
	endif()
	string(REGEX REPLACE "^test_" "unit/" name ${program})
	baton_quick_test(${name} ${program})
endforeach()

file(GLOB story_sources CONFIGURE_DEPENDS tests/story/*.c)
if(story_sources)
	baton_program(story ${story_sources})
	file(GLOB_RECURSE stories CONFIGURE_DEPENDS
		RELATIVE ${PROJECT_SOURCE_DIR}/tests/story tests/story/*.story)
	foreach(story ${stories})
		string(REGEX REPLACE "\\.story$" "" name story/${story})
		baton_quick_test(${name} story tests/story/${story})
	endforeach()
endif()

foreach(program sim model)
	file(GLOB sources CONFIGURE_DEPENDS tests/${program}/*.c)
	if(sources)
		baton_program(${program} ${sources})
		baton_fast(${program})
	endif()
endforeach()

# The file store's protocol, searched by itself.
file(GLOB sources CONFIGURE_DEPENDS tests/model/file/*.c)
if(sources)
	baton_program(model-file ${sources})
	target_include_directories(model-file PRIVATE tests)
	baton_fast(model-file)
endif()

# The file store's driver, verb by verb, and killed or stopped at every system call.
file(GLOB programs CONFIGURE_DEPENDS tests/store/file_*.c)
file(GLOB shared_sources CONFIGURE_DEPENDS tests/store/*.c)
list(REMOVE_ITEM shared_sources ${programs})
foreach(source ${programs})
	get_filename_component(name ${source} NAME_WE)
	baton_program(store_${name} ${source} ${shared_sources})
	target_link_libraries(store_${name} PRIVATE baton_parts PkgConfig::CMOCKA)
	target_include_directories(store_${name} PRIVATE tests)
	baton_quick_test(store/${name} store_${name})
	set_tests_properties(store/${name} PROPERTIES LABELS store TIMEOUT 600 COST 400)
endforeach()

# The fault proxy: for the suite below, and as a program for chaos.
file(GLOB relay_sources CONFIGURE_DEPENDS tests/relay/*.c)
list(FILTER relay_sources EXCLUDE REGEX /main\\.c$)
add_library(baton_relay STATIC ${relay_sources})
target_link_libraries(baton_relay PRIVATE baton_flags Threads::Threads)
target_include_directories(baton_relay PUBLIC tests tests/relay)
add_executable(relay tests/relay/main.c)
target_link_libraries(relay PRIVATE baton_flags baton_relay)
if(TARGET test_relay)
	target_link_libraries(test_relay PRIVATE baton_relay Threads::Threads)
endif()

# The suite that every store passes, and the measurements.
foreach(program conformance bench)
	file(GLOB sources CONFIGURE_DEPENDS tests/${program}/*.c ${program}/*.c)
	if(sources AND TARGET baton_parts)
		baton_program(${program} ${sources})
		target_link_libraries(${program} PRIVATE baton_parts baton_relay)
	endif()
endforeach()
# The library once more, with its calls of the system renamed so that tests can make them fail.
file(GLOB fault_sources CONFIGURE_DEPENDS tests/faults/*.c)
if(fault_sources AND TARGET baton_parts AND CMAKE_OBJCOPY)
	set(faulty ${PROJECT_BINARY_DIR}/libbaton_faulty.a)
	set(symbols ${PROJECT_SOURCE_DIR}/tests/faults/symbols.txt)
	add_custom_command(OUTPUT ${faulty}
		COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${symbols}
			$<TARGET_FILE:baton_parts> ${faulty}
		DEPENDS baton_parts ${symbols})
	add_custom_target(baton_faulty DEPENDS ${faulty})
	file(GLOB conformance_sources CONFIGURE_DEPENDS tests/conformance/*.c)
	baton_program(faults ${fault_sources})
	baton_program(conformance-faulty ${conformance_sources} tests/faults/fault.c)
	foreach(program faults conformance-faulty)
		add_dependencies(${program} baton_faulty)
		target_include_directories(${program} PRIVATE include src tests/faults)
		target_link_libraries(${program} PRIVATE ${faulty} baton_core baton_relay
			Threads::Threads ${CMAKE_DL_LIBS})
		set_target_properties(${program} PROPERTIES LINK_DEPENDS ${faulty})
	endforeach()
endif()

# Requests that come late, on the driver itself.
if(TARGET baton_module_postgres)
	baton_program(postgres-late tests/postgres/late.c)
	target_include_directories(postgres-late PRIVATE include)
	target_link_libraries(postgres-late PRIVATE ${CMAKE_DL_LIBS})
	add_dependencies(postgres-late baton_module_postgres)
endif()

# As the administrator of a server the suite speaks to it itself, where its library is there.
foreach(program conformance conformance-faulty)
	if(TARGET ${program} AND TARGET baton_driver_postgres)
		target_compile_definitions(${program} PRIVATE WITH_POSTGRES)
		target_link_libraries(${program} PRIVATE PostgreSQL::PostgreSQL)
	endif()
endforeach()

# The fuzzers' corpus, replayed on what the tests build.
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
	get_filename_component(name ${source} NAME_WE)
	file(GLOB inputs CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} fuzz/corpus/${name}/*)
	if(inputs AND TARGET baton_parts)
		baton_program(replay_${name} ${source} fuzz/replay.c ${${name}_sources})
		target_link_libraries(replay_${name} PRIVATE baton_parts)
		string(REGEX REPLACE "^fuzz_" "fuzz/" test ${name})
		baton_quick_test(${test} replay_${name} ${inputs})
	endif()
endforeach()

# The examples: each runs to its end; and several instances at once, of which one works.
if(TARGET examples)
	file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
	# Those that need a server are run by its tests (tests/postgres).
	list(FILTER example_sources EXCLUDE REGEX "-postgres\\.c$")
	foreach(example ${example_sources} two killed)
		get_filename_component(name ${example} NAME_WE)
		set(run ${PROJECT_SOURCE_DIR}/tests/examples/run)
		add_test(NAME examples/${name}
			COMMAND ${run} ${PROJECT_BINARY_DIR}/examples ${name})
		set_tests_properties(examples/${name} PROPERTIES LABELS examples TIMEOUT 300)
		if(BATON_GATES)
			add_test(NAME asan/examples/${name}
				COMMAND ${run} ${asan_dir}/examples ${name})
			set_tests_properties(asan/examples/${name} PROPERTIES
				LABELS asan TIMEOUT 400 FIXTURES_REQUIRED build-asan)
		endif()
	endforeach()
endif()

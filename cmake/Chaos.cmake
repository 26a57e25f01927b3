# Chaos for the command: the rig's worker, the command broken on purpose, and the short runs that
# are tests. `make chaos` goes on for longer.
add_executable(chaos_worker tests/chaos/worker.c src/base/clock.c)
target_include_directories(chaos_worker PRIVATE src)
target_link_libraries(chaos_worker PRIVATE baton_flags)

get_target_property(sources baton_command SOURCES)
add_executable(chaos_broken tests/chaos/broken.c ${sources})
target_include_directories(chaos_broken PRIVATE include src)
target_compile_definitions(chaos_broken PRIVATE BATON_VERSION="${PROJECT_VERSION}")
target_link_libraries(chaos_broken PRIVATE baton_flags baton)
foreach(function baton_work_lock supervise_stop guard_main kill)
	target_link_options(chaos_broken PRIVATE -Wl,--wrap=${function})
endforeach()

set(chaos ${PROJECT_SOURCE_DIR}/tests/chaos)
add_test(NAME chaos/judge COMMAND ${chaos}/judge_test.py)
set_tests_properties(chaos/judge PROPERTIES LABELS quick TIMEOUT 60)
add_test(NAME chaos/file COMMAND ${chaos}/run --baton $<TARGET_FILE:baton_command>
	--worker $<TARGET_FILE:chaos_worker> --failovers 300)
if(TARGET baton_module_redis) # its server says that it forgets nothing: no guard after its start
	add_test(NAME chaos/redis COMMAND ${PROJECT_SOURCE_DIR}/tests/servers with redis --
		${chaos}/run --baton $<TARGET_FILE:baton_command>
		--worker $<TARGET_FILE:chaos_worker> --failovers 300 --store "{url}?durable=1")
	set_tests_properties(chaos/redis PROPERTIES LABELS "chaos;servers" TIMEOUT 400 COST 500
		PROCESSORS 2 SKIP_RETURN_CODE 77 ENVIRONMENT BATON_MODULE_DIR=${BATON_MODULES})
endif()
add_test(NAME chaos/broken COMMAND ${chaos}/broken $<TARGET_FILE:chaos_broken>
	$<TARGET_FILE:chaos_worker>)
set_tests_properties(chaos/file chaos/broken PROPERTIES
	LABELS chaos TIMEOUT 400 COST 500 PROCESSORS 2)

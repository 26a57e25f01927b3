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
# Not on Redis in every run: without a work lock the guard must be let run within the drift's share
# of a lease of a second, and a busy machine's scheduler can be later than that. By hand:
#   tests/servers with redis -- make chaos STORE='{url}?durable=1' MINUTES=1
#   tests/redis/run build/debug/baton storm
add_test(NAME chaos/broken COMMAND ${chaos}/broken $<TARGET_FILE:chaos_broken>
	$<TARGET_FILE:chaos_worker>)
set_tests_properties(chaos/file chaos/broken PROPERTIES
	LABELS chaos TIMEOUT 400 COST 500 PROCESSORS 2)

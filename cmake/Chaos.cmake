# Chaos for the command: the rig's worker, the command broken on purpose, and the short runs that
# are tests. `make chaos` goes on for longer.
add_executable(chaos_worker tests/chaos/worker.c tests/chaos/fence.c)
target_include_directories(chaos_worker PRIVATE tests)
target_link_libraries(chaos_worker PRIVATE baton_flags baton_relay baton_common)
add_library(chaos_clock MODULE tests/chaos/clock.c)
target_link_libraries(chaos_clock PRIVATE baton_flags)
set_target_properties(chaos_clock PROPERTIES PREFIX "")

add_executable(chaos_broken tests/chaos/broken.c $<TARGET_OBJECTS:baton_command_objects>)
target_link_libraries(chaos_broken PRIVATE
	baton_flags baton baton_answer baton_simulate baton_telemetry baton_common)
foreach(function baton_work_lock supervise_stop guard_main kill)
	target_link_options(chaos_broken PRIVATE -Wl,--wrap=${function})
endforeach()

set(chaos ${PROJECT_SOURCE_DIR}/tests/chaos)
add_test(NAME chaos/judge COMMAND ${chaos}/judge_test.py)
add_test(NAME chaos/world COMMAND ${chaos}/world_test.py $<TARGET_FILE:relay>)
set_tests_properties(chaos/judge PROPERTIES LABELS quick TIMEOUT 60)
set_tests_properties(chaos/world PROPERTIES LABELS chaos TIMEOUT 60)
add_test(NAME chaos/file COMMAND ${chaos}/run --baton $<TARGET_FILE:baton_command>
	--worker $<TARGET_FILE:chaos_worker> --failovers 300)
add_test(NAME chaos/broken COMMAND ${chaos}/broken $<TARGET_FILE:chaos_broken>
	$<TARGET_FILE:chaos_worker>)
set_tests_properties(chaos/file chaos/broken PROPERTIES LABELS chaos TIMEOUT 400)
baton_half_cores(chaos/file 500 2)
baton_half_cores(chaos/broken 500 2)

# A deadline that another process trusts, on the stores that prove death.
add_executable(chaos_outlive tests/chaos/outlive.c)
target_include_directories(chaos_outlive PRIVATE include)
target_link_libraries(chaos_outlive PRIVATE baton_flags baton baton_common)
add_test(NAME chaos/outlive-file COMMAND chaos_outlive file: 40)
set_tests_properties(chaos/outlive-file PROPERTIES LABELS chaos TIMEOUT 300)
if(TARGET baton_module_postgres)
	add_test(NAME chaos/outlive-postgres COMMAND ${PROJECT_SOURCE_DIR}/tests/servers with
		postgres -- $<TARGET_FILE:chaos_outlive> {url}?fast=1 25)
	set_tests_properties(chaos/outlive-postgres PROPERTIES LABELS "chaos;servers" TIMEOUT 300
		SKIP_RETURN_CODE 77)
endif()

# On real servers, which are hurt as well (tests/chaos/world.py). They mostly wait for leases.
function(baton_chaos_on world module failovers)
	if(NOT TARGET baton_module_${module})
		return()
	endif()
	add_test(NAME chaos/${world} COMMAND ${chaos}/run --baton $<TARGET_FILE:baton_command>
		--worker $<TARGET_FILE:chaos_worker> --world ${world} --failovers ${failovers})
	set_tests_properties(chaos/${world} PROPERTIES LABELS "chaos;servers" TIMEOUT 400
		SKIP_RETURN_CODE 77)
	baton_half_cores(chaos/${world} 600 1)
endfunction()
baton_chaos_on(redis redis 300)
baton_chaos_on(redis-lost redis 30)
baton_chaos_on(redis-sentinel redis 20)
baton_chaos_on(redis-wild redis 80)
baton_chaos_on(redis-clock redis 40)
baton_chaos_on(postgres postgres 300)
baton_chaos_on(postgres-standby postgres 40)
baton_chaos_on(postgres-wild postgres 60)
# Record stores that are emptied (mariadb-wild, s3-wild, mssql-wild, azblob-wild, mongodb-wild) are
# played by hand: a standby that polls learns of a term late, and a store that lost all may give it
# again.
baton_chaos_on(mariadb mysql 60)
baton_chaos_on(azblob azblob 40)
baton_chaos_on(s3 s3 40)
baton_chaos_on(mssql mssql 40)
baton_chaos_on(memcached memcached 60)
baton_chaos_on(etcd etcd 60)
baton_chaos_on(consul consul 15)
baton_chaos_on(kubernetes kubernetes 15)
baton_chaos_on(mongodb mongodb 40)
if(TARGET baton_module_redis)
	add_test(NAME chaos/broken-redis COMMAND ${chaos}/broken $<TARGET_FILE:chaos_broken>
		$<TARGET_FILE:chaos_worker> redis)
	set_tests_properties(chaos/broken-redis PROPERTIES LABELS "chaos;servers" TIMEOUT 400
		SKIP_RETURN_CODE 77)
	baton_half_cores(chaos/broken-redis 500 1)
endif()
# Three hundred failovers, or servers and rivals that compute.
foreach(world redis postgres mariadb memcached etcd consul kubernetes)
	if(TEST chaos/${world})
		baton_half_cores(chaos/${world} 600 2)
	endif()
endforeach()

# Jepsen's experiment: what a lease is worth to a leader that is paused, and what fencing is.
file(GLOB sources CONFIGURE_DEPENDS tests/jepsen/*.c)
add_executable(jepsen_client ${sources})
target_include_directories(jepsen_client PRIVATE include)
target_link_libraries(jepsen_client PRIVATE baton_flags baton)
if(TARGET baton_driver_postgres)
	target_compile_definitions(jepsen_client PRIVATE WITH_POSTGRES)
	target_link_libraries(jepsen_client PRIVATE PostgreSQL::PostgreSQL)
endif()
foreach(store redis postgres)
	if(TARGET baton_module_${store})
		add_test(NAME jepsen/${store} COMMAND ${PROJECT_SOURCE_DIR}/tests/jepsen/run
			--client $<TARGET_FILE:jepsen_client> --baton $<TARGET_FILE:baton_command>
			--store ${store} --minutes 0.5)
		set_tests_properties(jepsen/${store} PROPERTIES LABELS "chaos;servers" TIMEOUT 240
			SKIP_RETURN_CODE 77)
		baton_half_cores(jepsen/${store} 300 1)
	endif()
endforeach()

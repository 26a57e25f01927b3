# The command: one program on top of the library's public face, and its tests.

# What `run` and `serve` tell of themselves: metrics as text, files, callbacks, spans.
file(GLOB telemetry_sources CONFIGURE_DEPENDS src/telemetry/*.c)
add_library(baton_telemetry STATIC ${telemetry_sources})
target_include_directories(baton_telemetry PUBLIC include src)
target_compile_definitions(baton_telemetry PRIVATE BATON_MODULE_DIR="${BATON_MODULE_DIR}")
target_link_libraries(baton_telemetry PRIVATE baton_flags
	PUBLIC baton_common Threads::Threads ${CMAKE_DL_LIBS} m)

# `baton simulate`: the core over a world of numbers.
file(GLOB simulate_sources CONFIGURE_DEPENDS src/simulate/*.c)
add_library(baton_simulate STATIC ${simulate_sources})
target_include_directories(baton_simulate PUBLIC src)
target_link_libraries(baton_simulate PRIVATE baton_flags PUBLIC baton_core m)
baton_fast(baton_simulate)

file(GLOB command_sources CONFIGURE_DEPENDS src/cli/*.c)
# Once, also for the command that is broken on purpose (Chaos.cmake).
add_library(baton_command_objects OBJECT ${command_sources})
target_include_directories(baton_command_objects PRIVATE include src)
target_compile_definitions(baton_command_objects PRIVATE BATON_VERSION="${PROJECT_VERSION}"
	BATON_LIBEXEC_DIR="${BATON_LIBEXEC_DIR}")
target_link_libraries(baton_command_objects PRIVATE baton_flags)

add_executable(baton_command $<TARGET_OBJECTS:baton_command_objects>)
set_target_properties(baton_command PROPERTIES OUTPUT_NAME baton)
# baton_common: what it shares with the library below the public face.
target_link_libraries(baton_command PRIVATE
	baton_flags baton baton_answer baton_simulate baton_telemetry baton_common)
# In a prefix of one's own the loader doesn't look for the library. Relative: it can be moved.
file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(baton_command PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
install(TARGETS baton_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)

if(BATON_TESTS)
	# A store for the tests that only the command's own means keep safe.
	add_library(drifty MODULE tests/cli/drifty.c)
	set_target_properties(drifty PROPERTIES PREFIX ""
		LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test-modules)
	target_link_libraries(drifty PRIVATE baton_flags baton_parts)
	add_test(NAME telemetry/otlp
		COMMAND ${PROJECT_SOURCE_DIR}/tests/telemetry/otlp $<TARGET_FILE:baton_command>)
	set_tests_properties(telemetry/otlp PROPERTIES
		LABELS cli TIMEOUT 300 SKIP_RETURN_CODE 77)
	add_test(NAME telemetry/deploy
		COMMAND ${PROJECT_SOURCE_DIR}/tests/telemetry/deploy $<TARGET_FILE:baton_command>)
	set_tests_properties(telemetry/deploy PROPERTIES LABELS cli TIMEOUT 600 COST 200)
	foreach(name run worklock options work history list signals service doctor
			simulate telemetry callbacks)
		add_test(NAME cli/${name}
			COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/${name}
				$<TARGET_FILE:baton_command>)
		set_tests_properties(cli/${name} PROPERTIES LABELS cli TIMEOUT 600 COST 200)
	endforeach()
endif()

# The tests of what stands around the command: manual, guide, shell completion, the systemd unit and
# the packages. Those that miss a tool say so and are counted as skipped.

# baton_outer_test(NAME PATH ARGUMENTS...): runs tests/PATH/run, which exits with 77 to be skipped.
function(baton_outer_test name folder)
	add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/${folder}/run ${ARGN})
	set_tests_properties(${name} PROPERTIES LABELS outer TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

foreach(shell bash zsh fish)
	baton_outer_test(completion/${shell} completion $<TARGET_FILE:baton_command> ${shell})
endforeach()
foreach(part unit notify)
	baton_outer_test(systemd/${part} systemd ${PROJECT_BINARY_DIR}/baton@.service
		$<TARGET_FILE:baton_command> ${part})
endforeach()
if(TARGET baton_serve)
	foreach(part unit serve)
		baton_outer_test(systemd/serve-${part} systemd
			${PROJECT_BINARY_DIR}/baton-serve.service $<TARGET_FILE:baton_command>
			${part})
	endforeach()
endif()
foreach(part json guide)
	baton_outer_test(docs/${part} docs $<TARGET_FILE:baton_command> ${part})
endforeach()

# docs/evidence: its generator on a small record, and the pages that are there; and the site.
add_test(NAME docs/evidence COMMAND ${PROJECT_SOURCE_DIR}/tests/evidence/run)
foreach(part build browser)
	add_test(NAME site/${part} COMMAND ${PROJECT_SOURCE_DIR}/tests/site/run ${part})
endforeach()
set_tests_properties(docs/evidence site/build site/browser PROPERTIES LABELS outer TIMEOUT 300
	SKIP_RETURN_CODE 77)
set_tests_properties(site/build PROPERTIES FIXTURES_SETUP site)
set_tests_properties(site/browser PROPERTIES FIXTURES_REQUIRED site)

# A new user's first minute with each store, as its page in docs/stores tells it.
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/stores/*.md)
foreach(page itself ${pages})
	get_filename_component(store ${page} NAME_WE)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
	set(title "")
	if(NOT page STREQUAL itself)
		file(STRINGS ${page} title REGEX "^## The first minute$")
	endif()
	if(page STREQUAL itself OR title)
		add_test(NAME docs/first-minute-${store} COMMAND
			${PROJECT_SOURCE_DIR}/tests/docs/first-minute
			$<TARGET_FILE:baton_command> ${store})
		set_tests_properties(docs/first-minute-${store} PROPERTIES
			LABELS outer TIMEOUT 300 SKIP_RETURN_CODE 77)
	endif()
endforeach()
if(TARGET baton_serve) # and with the sidecar
	add_test(NAME docs/first-minute-sidecar COMMAND
		${PROJECT_SOURCE_DIR}/tests/docs/first-minute $<TARGET_FILE:baton_command> file
		${PROJECT_SOURCE_DIR}/docs/guide/sidecar.md)
	set_tests_properties(docs/first-minute-sidecar PROPERTIES LABELS outer TIMEOUT 300)
endif()

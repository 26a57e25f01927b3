# The tests of the bindings in other languages (tests/bindings): of each language that has a driver
# there, a few scenarios for `make test` and the rest for `make verify`. Where the toolchain is
# missing, a test is skipped and says what is missing. Included by Gates.cmake.
set(run_bindings ${PROJECT_SOURCE_DIR}/tests/bindings/run)
file(GLOB makers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/bindings/*/make)
set(languages "")
foreach(maker ${makers})
	get_filename_component(language ${maker} DIRECTORY)
	get_filename_component(language ${language} NAME)
	list(APPEND languages ${language})
endforeach()
foreach(variant python-async cpp-17)
	string(REGEX REPLACE "-.*" "" language ${variant})
	if(language IN_LIST languages)
		list(APPEND languages ${variant})
	endif()
endforeach()
if(TARGET baton_command)
	# By hand, longer: tests/bindings/mixed --failovers 200
	baton_gate(bindings/rest-mixed 90 600 servers
		${PROJECT_SOURCE_DIR}/tests/bindings/mixed --failovers 25)
	set_tests_properties(bindings/rest-mixed PROPERTIES SKIP_RETURN_CODE 77)
	foreach(language ${languages})
		foreach(part few rest)
			baton_gate(bindings/${part}-${language} 60 900 servers
				${run_bindings} --${part} ${language})
			set_tests_properties(bindings/${part}-${language} PROPERTIES
				SKIP_RETURN_CODE 77)
		endforeach()
		# Adapters and examples, of those that have some.
		if(language MATCHES "^(go|dotnet|java|python|node)$")
			baton_gate(bindings/few-own-${language} 60 600 servers
				${PROJECT_SOURCE_DIR}/tests/bindings/own ${language})
			set_tests_properties(bindings/few-own-${language} PROPERTIES
				SKIP_RETURN_CODE 77)
		endif()
		# Its check builds tokio.
		if(language STREQUAL rust)
			baton_gate(bindings/rest-own-rust 60 900 servers
				${PROJECT_SOURCE_DIR}/tests/bindings/own rust)
			set_tests_properties(bindings/rest-own-rust PROPERTIES SKIP_RETURN_CODE 77)
		endif()
	endforeach()
endif()
baton_gate(bindings/few-layouts 10 60 lint ${PROJECT_SOURCE_DIR}/tests/bindings/layouts)
baton_gate(bindings/few-callbacks 10 60 lint ${PROJECT_SOURCE_DIR}/tests/bindings/callbacks)

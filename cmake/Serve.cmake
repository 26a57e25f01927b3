# `baton serve`: a program of its own in libexec, so that the command never loads an HTTP library.
# What answers is pure (src/serve/answer) and built always: the command proves histories with it.
# The program itself is built where libmicrohttpd is there. Included before Command.cmake.
file(GLOB answer_sources CONFIGURE_DEPENDS src/serve/answer/*.c)
add_library(baton_answer STATIC ${answer_sources})
target_include_directories(baton_answer PUBLIC include src)
target_link_libraries(baton_answer PRIVATE baton_flags)

set(BATON_LIBEXEC_DIR "${CMAKE_INSTALL_FULL_LIBEXECDIR}/baton" CACHE STRING
	"Where the command looks for the program behind baton serve")

# The files of the dashboard as bytes of a C file.
set(dashboard ${PROJECT_SOURCE_DIR}/src/serve/dashboard)
set(assets "index.html=text/html~ charset=utf-8" "dashboard.css=text/css~ charset=utf-8"
	"dashboard.js=text/javascript~ charset=utf-8" "icon.svg=image/svg+xml"
	"openapi.json=application/json")
function(baton_assets out)
	set(text "/* Made of src/serve/dashboard by cmake/Serve.cmake. */\n")
	string(APPEND text "#include \"serve/assets.h\"\n")
	set(list)
	foreach(asset ${assets})
		string(REGEX MATCH "^([^=]*)=(.*)$" all "${asset}")
		set(file ${CMAKE_MATCH_1})
		string(REPLACE "~" ";" type "${CMAKE_MATCH_2}") # a list's own sign
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dashboard}/${file})
		file(READ ${dashboard}/${file} hex HEX)
		string(LENGTH "${hex}" n)
		math(EXPR n "${n} / 2")
		string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
		string(MAKE_C_IDENTIFIER ${file} word)
		string(APPEND text "static const unsigned char ${word}[] = {${bytes}0};\n")
		string(APPEND list "\t{\"${file}\", \"${type}\", (const char *)${word}, ${n}},\n")
	endforeach()
	string(APPEND text "const struct serve_asset serve_assets[] = {\n${list}};\n")
	string(APPEND text "const size_t serve_n_assets = sizeof(serve_assets) / "
		"sizeof(serve_assets[0]);\n")
	file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
baton_assets(${PROJECT_BINARY_DIR}/serve_assets.c)

find_package(PkgConfig)
if(PKG_CONFIG_FOUND)
	pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.72)
	pkg_check_modules(GNUTLS IMPORTED_TARGET gnutls)
endif()
if(MICROHTTPD_FOUND AND GNUTLS_FOUND)
	file(GLOB serve_sources CONFIGURE_DEPENDS src/serve/*.c src/cli/serve/*.c)
	set(serve_libraries baton_flags baton_answer baton baton_telemetry baton_common
		PkgConfig::MICROHTTPD PkgConfig::GNUTLS Threads::Threads)
	# Once, also for the sidecar that is broken on purpose.
	add_library(baton_serve_objects OBJECT ${serve_sources}
		${PROJECT_BINARY_DIR}/serve_assets.c src/cli/options.c src/cli/config.c
		src/cli/format.c src/cli/log.c src/cli/open.c)
	target_include_directories(baton_serve_objects PRIVATE include src)
	target_link_libraries(baton_serve_objects PRIVATE baton_flags PkgConfig::MICROHTTPD
		PkgConfig::GNUTLS)
	add_executable(baton_serve $<TARGET_OBJECTS:baton_serve_objects>)
	target_link_libraries(baton_serve PRIVATE ${serve_libraries})
	if(BATON_TESTS)
		add_executable(serve_broken tests/serve/broken.c
			$<TARGET_OBJECTS:baton_serve_objects>)
		target_link_libraries(serve_broken PRIVATE ${serve_libraries})
		target_link_options(serve_broken PRIVATE -Wl,--wrap=baton_open)
		# A store for the tests whose calls hang.
		add_library(stuck MODULE tests/serve/stuck.c)
		set_target_properties(stuck PROPERTIES PREFIX ""
			LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test-modules)
		target_link_libraries(stuck PRIVATE baton_flags baton_parts)
		# In front of the library, for the tests: enters a leadership when it is over.
		add_library(serve_late MODULE tests/serve/late.c)
		target_link_libraries(serve_late PRIVATE baton_flags)
		target_include_directories(serve_late PRIVATE include)
		set_target_properties(serve_late PROPERTIES PREFIX "")
	endif()
	file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_LIBEXECDIR}/baton
		${CMAKE_INSTALL_FULL_LIBDIR})
	set_target_properties(baton_serve PROPERTIES OUTPUT_NAME serve
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec
		INSTALL_RPATH "$ORIGIN/${to_library}")
	install(TARGETS baton_serve RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/baton
		COMPONENT runtime)
	install(FILES ${PROJECT_BINARY_DIR}/baton-serve.service
		${PROJECT_BINARY_DIR}/baton-serve.socket
		DESTINATION ${BATON_UNIT_DIR} COMPONENT runtime)
else()
	message(STATUS "baton serve: not built, libmicrohttpd or gnutls is missing "
		"(libmicrohttpd-dev)")
endif()

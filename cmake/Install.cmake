# What `make install` copies where: headers, the shared library with its links, pkg-config and CMake
# packages, man pages, shell completion, the systemd units; with BATON_INSTALL_STATIC also
# libbaton.a. Included after Library.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

option(BATON_INSTALL_STATIC "Install libbaton.a, too" OFF)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/baton)

install(TARGETS baton EXPORT batonTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
	NAMELINK_COMPONENT development
	INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT batonTargets NAMESPACE baton:: DESTINATION ${package_dir} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/bindings/cpp/baton.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	COMPONENT development)

if(BATON_INSTALL_STATIC)
	add_library(baton_static STATIC $<TARGET_OBJECTS:baton_objects>
		$<TARGET_OBJECTS:baton_common> $<TARGET_OBJECTS:baton_core>)
	target_link_libraries(baton_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
	set_target_properties(baton_static PROPERTIES OUTPUT_NAME baton EXPORT_NAME static)
	install(TARGETS baton_static EXPORT batonStatic COMPONENT development
		ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
		INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
	install(EXPORT batonStatic NAMESPACE baton:: DESTINATION ${package_dir}
		COMPONENT development)
endif()

# A prefix can be moved as a whole: what lies below it is named relative to it.
foreach(dir LIBDIR INCLUDEDIR)
	if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
		set(BATON_PC_${dir} "${CMAKE_INSTALL_${dir}}")
	else()
		set(BATON_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
	endif()
endforeach()
set(BATON_PC_DL)
if(CMAKE_DL_LIBS)
	set(BATON_PC_DL "-l${CMAKE_DL_LIBS}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/baton.pc.in ${PROJECT_BINARY_DIR}/baton.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/baton.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
	COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/batonConfig.cmake.in
	${PROJECT_BINARY_DIR}/batonConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may change what programs see.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/batonConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/batonConfig.cmake ${PROJECT_BINARY_DIR}/batonConfigVersion.cmake
	DESTINATION ${package_dir} COMPONENT development)

# Every function has a page of its own name: a link to the page whose NAME lists it.
foreach(section 1 3 5 7 8)
	file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.${section})
	set(links)
	foreach(page ${pages})
		get_filename_component(title ${page} NAME_WLE)
		file(READ ${page} text)
		string(REGEX MATCH "\n\\.SH NAME\n([^\n]*) \\\\- " text "${text}")
		string(REPLACE ", " ";" names "${CMAKE_MATCH_1}")
		list(REMOVE_ITEM names ${title})
		foreach(name ${names})
			set(link ${PROJECT_BINARY_DIR}/man/${name}.${section})
			file(WRITE ${link} ".so man${section}/${title}.${section}\n")
			list(APPEND links ${link})
		endforeach()
	endforeach()
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
	set(component runtime)
	if(section EQUAL 3)
		set(component development)
	endif()
	install(FILES ${pages} ${links} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
		COMPONENT ${component})
endforeach()

# Where shells and systemd look, below the prefix; distributions have their own places.
set(completions ${PROJECT_SOURCE_DIR}/completions)
set(BATON_BASH_DIR ${CMAKE_INSTALL_DATADIR}/bash-completion/completions CACHE STRING "for bash")
set(BATON_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "for zsh")
set(BATON_FISH_DIR ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d CACHE STRING "for fish")
set(BATON_UNIT_DIR lib/systemd/system CACHE STRING "for systemd's units")
install(FILES ${completions}/baton.bash DESTINATION ${BATON_BASH_DIR} RENAME baton
	COMPONENT runtime)
install(FILES ${completions}/_baton DESTINATION ${BATON_ZSH_DIR} COMPONENT runtime)
install(FILES ${completions}/baton.fish DESTINATION ${BATON_FISH_DIR} COMPONENT runtime)
foreach(unit baton@.service baton-serve.service baton-serve.socket)
	configure_file(${PROJECT_SOURCE_DIR}/packaging/${unit}.in ${PROJECT_BINARY_DIR}/${unit}
		@ONLY)
endforeach()
# Those of `baton serve` are installed with its program (Serve.cmake).
install(FILES ${PROJECT_BINARY_DIR}/baton@.service DESTINATION ${BATON_UNIT_DIR} COMPONENT runtime)

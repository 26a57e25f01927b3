# libbaton: what programs link. Everything above the core, in the layers' own folders; the symbols
# that it exports are those of src/lib/libbaton.map and no others.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)
set(BATON_MODULE_DIR "${CMAKE_INSTALL_FULL_LIBDIR}/baton" CACHE STRING
	"Where drivers that are modules are looked for")

file(GLOB library_sources CONFIGURE_DEPENDS
	src/base/*.c src/store/*.c src/store/file/*.c src/store/memory/*.c src/runtime/*.c
	src/lib/*.c)

# What the command and the drivers that are modules have as well, since nothing of it is exported:
# compiled once for all of them. Who links it takes what it needs.
set(common_sources src/base/bytes.c src/base/clock.c src/base/lookup.c src/base/name_table.c
	src/base/nearest.c src/base/page.c src/base/secret.c src/base/sha256.c src/base/thread.c
	src/base/url.c src/store/base.c src/store/doctor.c src/store/names.c src/store/net.c
	src/store/options.c src/store/watch_index.c)
add_library(baton_common STATIC ${common_sources})
target_include_directories(baton_common PUBLIC include src)
target_link_libraries(baton_common PRIVATE baton_flags)
list(TRANSFORM common_sources PREPEND ${PROJECT_SOURCE_DIR}/)
list(REMOVE_ITEM library_sources ${common_sources})

add_library(baton_objects OBJECT ${library_sources})
target_include_directories(baton_objects PUBLIC include src)
target_link_libraries(baton_objects PRIVATE baton_flags)
target_compile_definitions(baton_objects PRIVATE BATON_VERSION="${PROJECT_VERSION}"
	BATON_MODULE_DIR="${BATON_MODULE_DIR}")

# For the tests of the parts: all symbols are to be had.
add_library(baton_parts STATIC $<TARGET_OBJECTS:baton_objects> $<TARGET_OBJECTS:baton_common>)
target_include_directories(baton_parts PUBLIC include src)
target_link_libraries(baton_parts PUBLIC baton_core Threads::Threads ${CMAKE_DL_LIBS})

add_library(baton SHARED $<TARGET_OBJECTS:baton_objects> $<TARGET_OBJECTS:baton_common>)
target_link_libraries(baton PRIVATE baton_flags baton_core Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(baton PUBLIC
	$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_options(baton PRIVATE
	-Wl,--version-script=${PROJECT_SOURCE_DIR}/src/lib/libbaton.map)
set_target_properties(baton PROPERTIES VERSION ${PROJECT_VERSION}
	SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/lib/libbaton.map
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

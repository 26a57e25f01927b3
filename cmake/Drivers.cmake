# Drivers that need a client library are modules: src/lib/drivers.c loads them by the scheme of a
# store's URL, so a program that uses the file store never loads libssl or libpq. They are built
# when their library is there, into modules/ of the build, where the programs of a preset look
# (BATON_MODULE_DIR); those that are installed look in the library's folder. After Library.cmake.
set(BATON_MODULES ${PROJECT_BINARY_DIR}/modules)
add_custom_target(modules)

# baton_driver(NAME SCHEMES scheme... LIBRARIES target... [SOURCES more...]): the driver of
# src/store/NAME. The module is called after its first scheme; the others are links to it.
# baton_driver_NAME has its objects, for tests of its parts. WEB: with the HTTP client. NET: with
# connections of its own. RECORD: an adapter for the layer of the record stores
# (src/store/record/adapter.h).
function(baton_driver name)
	cmake_parse_arguments(driver "WEB;NET;RECORD" "" "SCHEMES;LIBRARIES;SOURCES" ${ARGN})
	if(driver_WEB)
		list(PREPEND driver_LIBRARIES baton_web)
	endif()
	if(driver_NET)
		list(PREPEND driver_LIBRARIES baton_net)
	endif()
	if(driver_RECORD)
		list(PREPEND driver_LIBRARIES baton_record)
	endif()
	file(GLOB sources CONFIGURE_DEPENDS src/store/${name}/*.c src/store/${name}/*/*.c)
	list(POP_FRONT driver_SCHEMES first)
	list(APPEND driver_LIBRARIES baton_common)
	add_library(baton_driver_${name} OBJECT ${sources} ${driver_SOURCES})
	target_include_directories(baton_driver_${name} PUBLIC include src)
	target_link_libraries(baton_driver_${name} PRIVATE baton_flags PUBLIC ${driver_LIBRARIES})
	add_library(baton_module_${name} MODULE $<TARGET_OBJECTS:baton_driver_${name}>)
	target_link_libraries(baton_module_${name} PRIVATE
		baton_flags ${driver_LIBRARIES} Threads::Threads)
	set_target_properties(baton_module_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${first}
		LIBRARY_OUTPUT_DIRECTORY ${BATON_MODULES})
	add_dependencies(modules baton_module_${name})
	install(TARGETS baton_module_${name} COMPONENT runtime
		LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/baton)
	foreach(scheme ${driver_SCHEMES})
		file(MAKE_DIRECTORY ${BATON_MODULES})
		file(CREATE_LINK ${first}.so ${BATON_MODULES}/${scheme}.so SYMBOLIC)
		install(FILES ${BATON_MODULES}/${scheme}.so COMPONENT runtime
			DESTINATION ${CMAKE_INSTALL_LIBDIR}/baton)
	endforeach()
	message(STATUS "driver ${name}: built as ${BATON_MODULES}/${first}.so")
endfunction()

# What makes drivers of adapters: for their modules, and for tests.
file(GLOB record_sources CONFIGURE_DEPENDS src/store/record/*.c)
add_library(baton_record STATIC ${record_sources})
target_include_directories(baton_record PUBLIC include src)
target_link_libraries(baton_record PRIVATE baton_flags PUBLIC baton_decide baton_common)

# The HTTP client of src/base/web and what the stores that speak HTTP share, for their modules alone
# and for tests. libcurl: sends nothing that could raise SIGPIPE, also under TLS, from 7.87 on.
find_package(CURL 7.87)
find_package(PkgConfig)
if(PKG_CONFIG_FOUND)
	pkg_check_modules(JANSSON IMPORTED_TARGET jansson>=2.11)
endif()
file(GLOB web_sources CONFIGURE_DEPENDS src/base/web/*.c)
file(GLOB web_store_sources CONFIGURE_DEPENDS src/store/web/*.c)
if(CURL_FOUND AND JANSSON_FOUND)
	add_library(baton_web STATIC ${web_sources} ${web_store_sources})
	target_include_directories(baton_web PUBLIC include src)
	target_link_libraries(baton_web PRIVATE baton_flags
		PUBLIC baton_common CURL::libcurl PkgConfig::JANSSON)
	set(web_missing)
else()
	set(web_missing "libcurl 7.87 or jansson (libcurl4-openssl-dev, libjansson-dev)")
endif()

# Connections of drivers that speak a protocol of their own (src/base/net), for their modules alone
# and for tests.
find_package(OpenSSL 1.1.1)
file(GLOB net_sources CONFIGURE_DEPENDS src/base/net/*.c)
if(OpenSSL_FOUND)
	add_library(baton_net STATIC ${net_sources})
	target_include_directories(baton_net PUBLIC include src)
	target_link_libraries(baton_net PRIVATE baton_flags
		PUBLIC baton_common OpenSSL::SSL OpenSSL::Crypto)
endif()

# The scripts of src/store/redis/lua as bytes of a C file. The order is that of enum redis_script.
function(baton_redis_scripts out)
	set(names prelude lease_open lease_renew lease_keep lease_close reclaim claims campaign
		release observe publish withdraw candidates order pause history list doctor)
	set(text "/* Made of src/store/redis/lua by cmake/Drivers.cmake. */\n")
	string(APPEND text "#include \"store/redis/redis.h\"\n")
	set(list)
	foreach(name ${names})
		set(file ${PROJECT_SOURCE_DIR}/src/store/redis/lua/${name}.lua)
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
		file(READ ${file} bytes HEX)
		string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
		string(APPEND text "static const unsigned char lua_${name}[] = {${bytes}};\n")
		if(NOT name STREQUAL prelude)
			string(APPEND list "\t{lua_${name}, sizeof(lua_${name})},\n")
		endif()
	endforeach()
	string(APPEND text "const struct redis_source redis_prelude = "
		"{lua_prelude, sizeof(lua_prelude)};\n"
		"const struct redis_source redis_sources[REDIS_SCRIPTS] = {\n${list}};\n")
	# This one is for users, and is printed.
	set(file ${PROJECT_SOURCE_DIR}/src/store/redis/lua/fence.lua)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
	string(APPEND text "const char redis_fence[] = {${bytes}0};\n")
	file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/redis)
elseif(TARGET baton_net)
	baton_redis_scripts(${PROJECT_BINARY_DIR}/redis_lua.c)
	baton_driver(redis NET SCHEMES redis rediss redis+unix redis+sentinel redis+cluster
		LIBRARIES OpenSSL::Crypto SOURCES ${PROJECT_BINARY_DIR}/redis_lua.c)
else()
	message(STATUS "driver redis: NOT built, OpenSSL (libssl-dev) is missing")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/memcached)
elseif(TARGET baton_net)
	baton_driver(memcached NET RECORD SCHEMES memcached memcacheds)
else()
	message(STATUS "driver memcached: NOT built, OpenSSL (libssl-dev) is missing")
endif()

# src/store/STORE/functions.sql as bytes of a C file, which defines the variable that the store's
# header declares. It is for users, and is printed.
function(baton_sql_functions store header variable out)
	set(file ${PROJECT_SOURCE_DIR}/src/store/${store}/functions.sql)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
	file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "/* Made by cmake/Drivers.cmake. */
#include \"store/${store}/${header}\"
const char ${variable}[] = {${bytes}0};
")
endfunction()

find_package(PostgreSQL 14) # the client: pipelines
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/postgres)
elseif(PostgreSQL_FOUND)
	baton_sql_functions(postgres postgres.h pg_functions_script
		${PROJECT_BINARY_DIR}/postgres_functions.c)
	baton_driver(postgres SCHEMES postgres postgresql LIBRARIES PostgreSQL::PostgreSQL
		SOURCES ${PROJECT_BINARY_DIR}/postgres_functions.c)
else()
	message(STATUS "driver postgres: NOT built, libpq (libpq-dev) is missing")
endif()

if(PKG_CONFIG_FOUND)
	pkg_check_modules(MARIADB IMPORTED_TARGET libmariadb>=3.3)
endif()
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/mysql)
elseif(MARIADB_FOUND)
	baton_sql_functions(mysql mysql.h mysql_functions_script
		${PROJECT_BINARY_DIR}/mysql_functions.c)
	baton_driver(mysql RECORD SCHEMES mysql mariadb LIBRARIES PkgConfig::MARIADB
		SOURCES ${PROJECT_BINARY_DIR}/mysql_functions.c)
else()
	message(STATUS "driver mysql: NOT built, libmariadb (libmariadb-dev) is missing")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/s3)
elseif(TARGET baton_web)
	baton_driver(s3 RECORD WEB SCHEMES s3)
else()
	message(STATUS "driver s3: NOT built, ${web_missing} is missing")
endif()

find_path(SYBDB_INCLUDE sybdb.h)
find_library(SYBDB_LIBRARY sybdb)
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/mssql)
elseif(SYBDB_INCLUDE AND SYBDB_LIBRARY)
	baton_driver(mssql RECORD SCHEMES mssql LIBRARIES ${SYBDB_LIBRARY})
	# db-lib keeps pointers to its handlers, and a thread may end after the store is closed.
	target_link_options(baton_module_mssql PRIVATE LINKER:-z,nodelete)
else()
	message(STATUS "driver mssql: NOT built, db-lib (freetds-dev) is missing")
endif()

if(PKG_CONFIG_FOUND)
	pkg_check_modules(MONGOC IMPORTED_TARGET libmongoc-1.0>=1.23)
endif()
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/mongodb)
elseif(MONGOC_FOUND AND TARGET baton_net)
	baton_driver(mongodb NET RECORD SCHEMES mongodb mongodb+srv LIBRARIES PkgConfig::MONGOC)
	# A lookup of servers may end after the store is closed.
	target_link_options(baton_module_mongodb PRIVATE LINKER:-z,nodelete)
else()
	message(STATUS "driver mongodb: NOT built, libmongoc (libmongoc-dev) or OpenSSL is missing")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/etcd)
elseif(TARGET baton_web)
	baton_driver(etcd WEB SCHEMES etcd etcds)
else()
	message(STATUS "driver etcd: NOT built, ${web_missing} is missing")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/consul)
elseif(TARGET baton_web)
	baton_driver(consul WEB SCHEMES consul consuls)
else()
	message(STATUS "driver consul: NOT built, ${web_missing} is missing")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/azblob)
elseif(TARGET baton_web)
	baton_driver(azblob RECORD WEB SCHEMES azblob)
else()
	message(STATUS "driver azblob: NOT built, ${web_missing} is missing")
endif()

# libyaml: kubeconfigs. libcrypto: names that can't be names of objects; libcurl has it anyhow.
if(PKG_CONFIG_FOUND)
	pkg_check_modules(YAML IMPORTED_TARGET yaml-0.1>=0.2)
endif()
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/store/kubernetes)
elseif(TARGET baton_web AND YAML_FOUND AND OpenSSL_FOUND)
	baton_driver(kubernetes WEB SCHEMES kubernetes
		LIBRARIES PkgConfig::YAML OpenSSL::Crypto)
elseif(TARGET baton_web)
	message(STATUS "driver kubernetes: NOT built, libyaml (libyaml-dev) or OpenSSL is missing")
else()
	message(STATUS "driver kubernetes: NOT built, ${web_missing} is missing")
endif()

# The exporter of telemetry: a module that is no driver (its name has a "-"), loaded by `run` and
# `serve` when an endpoint is set.
find_package(ZLIB)
if(TARGET baton_web AND ZLIB_FOUND)
	file(GLOB sources CONFIGURE_DEPENDS src/telemetry/otlp/*.c)
	add_library(baton_otlp MODULE ${sources} src/telemetry/json.c
		src/telemetry/namespace.c src/telemetry/trace.c)
	target_include_directories(baton_otlp PRIVATE include src)
	target_compile_definitions(baton_otlp PRIVATE BATON_VERSION="${PROJECT_VERSION}")
	target_link_libraries(baton_otlp PRIVATE
		baton_flags baton_web baton_common CURL::libcurl ZLIB::ZLIB Threads::Threads)
	set_target_properties(baton_otlp PROPERTIES PREFIX "" OUTPUT_NAME telemetry-otlp
		LIBRARY_OUTPUT_DIRECTORY ${BATON_MODULES})
	add_dependencies(modules baton_otlp)
	install(TARGETS baton_otlp COMPONENT runtime
		LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/baton)
else()
	message(STATUS "telemetry by OTLP is left out: zlib or ${web_missing} is missing")
endif()

# The flags of every target, in one place: `baton_flags` carries them, `baton_fast` is for what
# must be quick in debug builds too.
include(CheckCCompilerFlag)

add_library(baton_flags INTERFACE)
target_compile_definitions(baton_flags INTERFACE _GNU_SOURCE)
target_compile_options(baton_flags INTERFACE
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
	-Wvla -Wundef -Wformat=2 -Wimplicit-fallthrough
	-fvisibility=hidden)
target_link_options(baton_flags INTERFACE -Wl,--as-needed)

if(BATON_WERROR)
	target_compile_options(baton_flags INTERFACE -Werror)
	target_link_options(baton_flags INTERFACE -Wl,--fatal-warnings)
endif()

if(BATON_HARDENING)
	# Distributions may predefine another level.
	target_compile_options(baton_flags INTERFACE
		-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong)
	foreach(flag stack-clash-protection cf-protection)
		string(MAKE_C_IDENTIFIER "HAVE_${flag}" have)
		check_c_compiler_flag(-f${flag} ${have})
		if(${have})
			target_compile_options(baton_flags INTERFACE -f${flag})
		endif()
	endforeach()
	target_link_options(baton_flags INTERFACE
		$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro -Wl,-z,now)
endif()

if(BATON_SANITIZE)
	target_compile_options(baton_flags INTERFACE
		-fsanitize=${BATON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_link_options(baton_flags INTERFACE -fsanitize=${BATON_SANITIZE})
endif()
if(BATON_FUZZ)
	target_compile_options(baton_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Twenty thousand worlds and a million states in every test run: the core and its provers are
# optimised in debug builds too. To step through them: cmake --preset debug -DBATON_CORE_OPT=-O0
function(baton_fast target)
	target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:${BATON_CORE_OPT}>)
endfunction()

# Finds llvm-config, newest first; LLVM_CONFIG names another one. The compiler
# uses LLVM's C interface only and links the shared library.
find_program(LLVM_CONFIG NAMES
    llvm-config-19 llvm-config-18 llvm-config-17 llvm-config-16 llvm-config)
if(NOT LLVM_CONFIG)
    message(FATAL_ERROR "no llvm-config: install llvm-19-dev (or 18, 17, 16), "
        "or give its place by -DLLVM_CONFIG=...")
endif()
function(llvm_config result)
    execute_process(COMMAND ${LLVM_CONFIG} --link-shared ${ARGN} OUTPUT_VARIABLE text
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(${result} "${text}" PARENT_SCOPE)
endfunction()
llvm_config(LLVM_VERSION --version)
llvm_config(LLVM_INCLUDE --includedir)
llvm_config(llvm_libdir --libdir)
llvm_config(llvm_libs --libs)
if(LLVM_VERSION VERSION_LESS 16)
    message(FATAL_ERROR "LLVM ${LLVM_VERSION} (${LLVM_CONFIG}) is older than 16")
endif()
message(STATUS "Found LLVM ${LLVM_VERSION}: ${LLVM_CONFIG}")
separate_arguments(LLVM_LINK UNIX_COMMAND "-L${llvm_libdir} ${llvm_libs}")

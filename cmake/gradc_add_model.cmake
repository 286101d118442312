# gradc_add_model(TARGET FILE model.model [OPTIONS -D batch=32 --budget 64MiB ...])
#
# Compiles a model to TARGET.o and TARGET.h and makes a static library TARGET of
# it. Whoever links TARGET may #include "TARGET.h". The object needs nothing;
# link gradc::runtime as well for threads, weights, checkpoints and readers.
function(gradc_add_model target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE" "OPTIONS")
    if(NOT arg_FILE OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "gradc_add_model(${target}): say FILE model.model [OPTIONS ...]")
    endif()
    get_filename_component(model "${arg_FILE}" ABSOLUTE)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.gradc")
    set(object "${folder}/${target}.o")
    set(header "${folder}/${target}.h")
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${object}" "${header}"
        COMMAND gradc::gradc build "${model}" -o "${object}" ${arg_OPTIONS}
        DEPENDS "${model}" gradc::gradc
        COMMENT "gradc build ${arg_FILE}" VERBATIM)
    add_library(${target} STATIC "${object}" "${header}")
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(${target} PUBLIC "${folder}")
endfunction()

# cmake -DTO=FOLDER -DABI=abi.h -DPRELUDE=prelude.cuh -DMODELS=a.model;b.model -P embed.cmake
# writes embedded.c and embedded.h: files as NUL-terminated byte arrays.
set(header "/* Written by cmake/embed.cmake. */
#ifndef GRADC_EMBEDDED_H
#define GRADC_EMBEDDED_H
#include <stddef.h>

/* One file of the standard library: \"nn\", its text, its size without the NUL. */
typedef struct LibraryFile {
    const char *name, *text;
    size_t bytes;
} LibraryFile;
extern const LibraryFile library_file[]; /* ends with a NULL name */
")
set(code "/* Written by cmake/embed.cmake. */\n#include \"embedded.h\"\n\n")
set(table "")

function(embed symbol file)
    file(READ ${file} hex HEX)
    file(SIZE ${file} bytes)
    string(REGEX REPLACE "(........................)" "\\1\n" lines "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," array "${lines}")
    set(header "${header}extern const char ${symbol}[];\nextern const size_t ${symbol}_bytes;\n"
        PARENT_SCOPE)
    set(code "${code}const char ${symbol}[] = {\n${array}0};\nconst size_t ${symbol}_bytes = ${bytes};\n\n"
        PARENT_SCOPE)
endfunction()

embed(abi_text ${ABI})
embed(cuda_prelude ${PRELUDE})
foreach(model ${MODELS})
    get_filename_component(name ${model} NAME_WE)
    embed(lib_${name}_model ${model})
    string(APPEND table "    {\"${name}\", lib_${name}_model, sizeof lib_${name}_model - 1},\n")
endforeach()
file(WRITE ${TO}/embedded.h "${header}#endif\n")
file(WRITE ${TO}/embedded.c
    "${code}const LibraryFile library_file[] = {\n${table}    {NULL, NULL, 0},\n};\n")

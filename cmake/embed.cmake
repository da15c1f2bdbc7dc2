# Writes OUTPUT: a C++ table of the device headers (path below kernels/, text).
set(text "// Generated from kernels/ by cmake/embed.cmake.\n#include \"backends/embedded_kernels.h\"\n\nnamespace tilewright {\nconst EmbeddedFile embedded_kernels[] = {\n")
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} contents)
  string(APPEND text "    {\"${file}\", R\"TILEWRIGHT(${contents})TILEWRIGHT\"},\n")
endforeach()
string(APPEND text "    {nullptr, nullptr},\n};\n}  // namespace tilewright\n")
file(WRITE ${OUTPUT} "${text}")

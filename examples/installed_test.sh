#!/usr/bin/env bash
# installed_test.sh BUILD EXAMPLES: installs into a temporary prefix, builds the examples there with a C compiler and pkg-config, with
# the shared library, and as a CMake package, with the static one; runs them.
set -euo pipefail
build=$(realpath "$1") examples=$(realpath "$2")
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
pc=$(dirname "$(find "$prefix" -name tilewright.pc)")
sed -i "s|^prefix=.*|prefix=$prefix|" "$pc/tilewright.pc"

flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs tilewright)
cc -std=c99 -Wall -Wextra -pedantic -Werror "$examples/attention.c" -o "$prefix/from_c" $flags
LD_LIBRARY_PATH=$(dirname "$pc") "$prefix/from_c"
c++ -std=c++20 "$examples/attention.cpp" -o "$prefix/from_cpp" $flags
LD_LIBRARY_PATH=$(dirname "$pc") "$prefix/from_cpp"

mkdir "$prefix/project"
cat > "$prefix/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(example CXX)
find_package(Tilewright REQUIRED)
add_executable(example $examples/attention.cpp)
target_link_libraries(example PRIVATE Tilewright::static)
EOF
cmake -S "$prefix/project" -B "$prefix/project/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$prefix/project/build" >/dev/null
"$prefix/project/build/example"

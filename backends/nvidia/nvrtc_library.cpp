// The places where CUDA's run-time compiler is installed: toolkits, distribution packages, Python wheels.
#include "backends/nvidia/nvrtc_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tilewright::nvidia {
namespace {

namespace fs = std::filesystem;
constexpr const char* sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};  // the newest first

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The subfolders of `folder` whose names begin with `prefix`, the last in the alphabet (the newest version) first.
std::vector<fs::path> subfolders(const fs::path& folder, const std::string& prefix) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().filename().string().starts_with(prefix) && fs::is_directory(entry->path(), error)) found.push_back(entry->path());
    std::sort(found.rbegin(), found.rend());
    return found;
}

void add_folder(std::vector<std::string>& files, const fs::path& folder) {
    std::error_code error;
    for (const char* soname : sonames)
        if (fs::exists(folder / soname, error)) files.push_back((folder / soname).string());
}

void add_toolkit(std::vector<std::string>& files, const fs::path& root) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) add_folder(files, root / folder);
}

// A Python installation keeps CUDA's wheels in lib/python3.*/site-packages/nvidia/{cuda_nvrtc,cu13}/lib.
void add_python(std::vector<std::string>& files, const fs::path& prefix) {
    for (const fs::path& python : subfolders(prefix / "lib", "python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
            for (const fs::path& wheel : subfolders(python / packages / "nvidia", "")) add_folder(files, wheel / "lib");
}

// The prefix of the first python3 in PATH. Its symbolic link is left alone: a virtual environment links to another Python.
fs::path python_prefix() {
    std::stringstream folders(environment("PATH"));
    std::error_code error;
    for (std::string folder; std::getline(folders, folder, ':');)
        if (!folder.empty() && fs::exists(fs::path(folder) / "python3", error)) return fs::path(folder).parent_path();
    return {};
}

}  // namespace

std::vector<std::string> nvrtc_candidates() {
    std::vector<std::string> files;
    if (std::string named = environment("TILEWRIGHT_NVRTC_LIBRARY"); !named.empty()) return {named};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        if (std::string root = environment(variable); !root.empty()) add_toolkit(files, root);
    files.insert(files.end(), std::begin(sonames), std::end(sonames));
    for (const fs::path& root : subfolders("/usr/local", "cuda")) add_toolkit(files, root);
    std::string home = environment("HOME");
    for (const fs::path& prefix : {fs::path(environment("VIRTUAL_ENV")), fs::path(environment("CONDA_PREFIX")), python_prefix(), fs::path("/usr"),
                                   fs::path("/usr/local"), home.empty() ? fs::path() : fs::path(home) / ".local"})
        if (!prefix.empty()) add_python(files, prefix);
    std::vector<std::string> unique;
    for (std::string& file : files)
        if (std::find(unique.begin(), unique.end(), file) == unique.end()) unique.push_back(std::move(file));
    return unique;
}

}  // namespace tilewright::nvidia
